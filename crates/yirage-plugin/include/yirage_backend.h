/* A backend of yirage as a shared library: what a maker of devices implements to have models run on them.
 *
 * The library gives memory, one queue that runs in the order of submission, and a compiler of kernels. yirage writes the
 * kernels, as C++ in the dialect that the device names, and does all else: plans, weights, caches, batches. The library
 * exports one function, `yirage_backend`, and is loaded only where somebody names it: YIRAGE_PLUGINS=NAME=/path/to/library.so
 *
 * Rules for all functions of `struct yirage_backend`:
 * - A function that returns `yirage_status` says what is wrong in `message`, in UTF-8 with a 0 behind it.
 * - Functions of one device are called by one thread at a time, but for `reached` and `wait`, which any thread may call at
 *   any time. `count` and `describe` are called before a device is opened, and at any time.
 * - What "submits" returns before it has run, or after: as the library likes. What is wrong with it later is told by `wait`
 *   for the first value that was signalled behind it, once.
 * - After YIRAGE_LOST every call on the device says so, and `free`, `unload` and `close` still return.
 */
#ifndef YIRAGE_BACKEND_H
#define YIRAGE_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. It changes when a library of the version before would not be understood. */
#define YIRAGE_BACKEND_VERSION 1

typedef int32_t yirage_status;
#define YIRAGE_DONE 0
/* The call failed; the device goes on. */
#define YIRAGE_FAILED 1
/* The device has no room left. */
#define YIRAGE_OUT_OF_MEMORY 2
/* The device is gone. */
#define YIRAGE_LOST 3
/* The library does not do this at all. */
#define YIRAGE_UNSUPPORTED 4
/* `wait` alone: the queue did not come so far in time. */
#define YIRAGE_NOT_YET 5

/* Where a function says what is wrong. */
struct yirage_message {
  char *text;
  size_t bytes;
};

/* What is known of a device without opening it. What is not known stays 0, as it comes. Texts end with a 0. */
struct yirage_device_info {
  /* What the maker calls it. */
  char name[128];
  /* What kernels are compiled for. */
  char arch[64];
  char driver_version[64];
  /* The dialect of its kernels: "cuda", "hip", "hip-rdna", "musa", "maca" or "corex", whose subgroups have 32, 64, 32, 32, 64
   * and 64 threads. */
  char dialect[16];
  /* Bytes of memory: all, and those that could be used now. */
  uint64_t total_memory;
  uint64_t free_memory;
  /* Multiprocessors, or whatever the maker counts. */
  uint32_t cores;
  /* Threads of a group at most, and bytes that they share at most. Needed. */
  uint32_t threads;
  uint64_t shared_bytes;
  /* Groups of a launch at most, along three axes. Needed. */
  uint32_t grid[3];
  /* Whether a processor plays the device. */
  uint32_t software;
  /* Steps that may be on the queue at once, at least 1. Needed. */
  uint32_t in_flight;
};

/* Bytes of memory of the device. */
struct yirage_slice {
  uint64_t buffer;
  uint64_t offset;
  uint64_t bytes;
};

/* A kernel of a source. */
struct yirage_kernel {
  /* The name of its function, which has C linkage, takes a pointer for each buffer and gives nothing. */
  const char *name;
  /* Threads of each group, along the first axis. */
  uint32_t threads;
  /* How many pointers it takes. */
  uint32_t buffers;
};

/* A launch. `slices` are the kernel's buffers in order; of two that overlap, neither is written. */
struct yirage_launch {
  uint64_t module;
  const char *kernel;
  uint32_t grid[3];
  uint32_t threads;
  const struct yirage_slice *slices;
  size_t slice_count;
};

/* A device that was opened: the library's own. */
struct yirage_device;

/* Commands that are captured once and replayed at the price of one. */
struct yirage_graphs {
  /* sizeof(struct yirage_graphs). */
  uint32_t bytes;
  /* What `launch`, `copy` and `fill` are given from now on is kept in its order, and nothing of it runs: no other function is called
   * until `end`. */
  yirage_status (*begin)(struct yirage_device *device, struct yirage_message *message);
  /* Ends that, also where a command between has failed. The graph's buffers and modules stay until it was released. */
  yirage_status (*end)(struct yirage_device *device, uint64_t *graph, struct yirage_message *message);
  /* Submits: runs what a graph has. */
  yirage_status (*replay)(struct yirage_device *device, uint64_t graph, struct yirage_message *message);
  /* Forgets a graph once everything submitted so far has run. */
  void (*release)(struct yirage_device *device, uint64_t graph);
};

/* A clock that runs on the device. */
struct yirage_clock {
  /* sizeof(struct yirage_clock). */
  uint32_t bytes;
  /* Submits: writes the device's time, in nanoseconds from a moment that is the same for all, once everything before has run.
   * `nanoseconds` stays until a signal behind it was reached, or the device is closed. */
  yirage_status (*timestamp)(struct yirage_device *device, uint64_t *nanoseconds, struct yirage_message *message);
};

/* The functions of a backend. None of them is null but where it is said. */
struct yirage_backend {
  /* YIRAGE_BACKEND_VERSION. */
  uint32_t version;
  /* sizeof(struct yirage_backend). */
  uint32_t bytes;
  /* What YIRAGE_PLUGINS calls it. */
  const char *name;
  /* The maker, and what it is made of: "Kunlunxin XRE 5". */
  const char *title;

  /* How many devices there are. */
  yirage_status (*count)(uint32_t *devices, struct yirage_message *message);
  yirage_status (*describe)(uint32_t ordinal, struct yirage_device_info *info, struct yirage_message *message);
  yirage_status (*open)(uint32_t ordinal, struct yirage_device **device, struct yirage_message *message);
  /* Nothing of the device is used any more; what it still has goes with it. */
  void (*close)(struct yirage_device *device);

  /* Memory at an address that is a multiple of 256. No two buffers that are held at the same time have the same number. */
  yirage_status (*alloc)(struct yirage_device *device, uint64_t bytes, uint64_t *buffer, struct yirage_message *message);
  /* Gives memory back once everything submitted so far has run. */
  void (*free)(struct yirage_device *device, uint64_t buffer);

  /* Submits: bytes of the host to the device. They are read before it returns. */
  yirage_status (*upload)(struct yirage_device *device, const void *from, struct yirage_slice to, struct yirage_message *message);
  /* Submits: bytes of the device to the host. `to` stays until a signal behind it was reached, or the device is closed. */
  yirage_status (*download)(struct yirage_device *device, struct yirage_slice from, void *to, struct yirage_message *message);
  /* Submits: bytes to as many others, which do not overlap them. */
  yirage_status (*copy)(struct yirage_device *device, struct yirage_slice from, struct yirage_slice to, struct yirage_message *message);
  /* Submits: makes every byte this one. */
  yirage_status (*fill)(struct yirage_device *device, struct yirage_slice slice, uint8_t byte, struct yirage_message *message);

  /* Compiles a source. Every operation of floats is rounded by itself: no product and sum become one. */
  yirage_status (*load)(struct yirage_device *device, const char *source, size_t source_bytes, const struct yirage_kernel *kernels,
                        size_t kernel_count, uint64_t *module, struct yirage_message *message);
  /* Forgets a module once everything submitted so far has run. */
  void (*unload)(struct yirage_device *device, uint64_t module);
  /* Submits: runs a kernel. */
  yirage_status (*launch)(struct yirage_device *device, const struct yirage_launch *launch, struct yirage_message *message);

  /* Submits: the queue's value becomes `value`, which is larger than any before, once everything before has run. */
  yirage_status (*signal)(struct yirage_device *device, uint64_t *value, struct yirage_message *message);
  /* The last value that the queue has signalled. */
  yirage_status (*reached)(struct yirage_device *device, uint64_t *value, struct yirage_message *message);
  /* Waits until the queue has signalled `value`, for so many nanoseconds at most. */
  yirage_status (*wait)(struct yirage_device *device, uint64_t value, uint64_t nanoseconds, struct yirage_message *message);

  /* From here on a table may end, as those of older headers do, and what a library does not have is null: models run without. What
   * `bytes` does not cover is not read. */
  const struct yirage_graphs *graphs;
  const struct yirage_clock *clock;
};

/* What the library exports: its functions, which stay where they are. */
typedef const struct yirage_backend *(*yirage_backend_function)(void);

#ifdef __cplusplus
}
#endif

#endif

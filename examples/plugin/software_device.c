/* A backend of yirage in C: one device in software, whose kernels the system's C++ compiler compiles and the emulator of
 * `crates/yirage-sim/src/emulator/cpp` runs. It is a pattern: a maker's library has its own runtime in place of `malloc` and
 * `memcpy`, and its own run-time compiler in place of `c++`.
 *
 *   cc -shared -fPIC -Icrates/yirage-plugin/include -o libsoftware.so examples/plugin/software_device.c -ldl
 *   export YIRAGE_PLUGINS=software=$PWD/libsoftware.so SOFTWARE_EMULATOR=$PWD/crates/yirage-sim/src/emulator/cpp
 *   yirage devices
 *   yirage run --backend software MODEL
 *
 * Its queue is the caller: whatever is submitted has run when the call returns. It has what a library may leave out as well:
 * captured graphs, which here are lists of commands, and a clock, which here is the host's.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "yirage_backend.h"

#define DIALECT "musa"
#define SUBGROUP 32

/* Runs a kernel of a module by its place in the module; what goes wrong is returned. */
typedef const char *(*run_function)(uint32_t kernel, void *const *buffers, const uint32_t *grid);

struct module {
  void *library;
  run_function run;
  char **names;
  size_t count;
};

/* A command of a captured graph. */
struct command {
  enum { LAUNCH, COPY, FILL } kind;
  struct yirage_launch launch;
  struct yirage_slice from, to;
  uint8_t byte;
};

struct graph {
  struct command *commands;
  size_t count, room;
  /* A command could not be kept. */
  int failed;
};

struct yirage_device {
  /* Sources and what is made of them. */
  char folder[64];
  uint64_t modules;
  uint64_t signalled;
  /* What commands are kept in, between `begin` and `end`. */
  struct graph *capture;
};

static yirage_status fail(struct yirage_message *message, yirage_status status, const char *what, const char *why) {
  snprintf(message->text, message->bytes, "%s%s%s", what, *why ? ": " : "", why);
  return status;
}

#ifndef SOFTWARE_EMULATOR_HERE
#define SOFTWARE_EMULATOR_HERE ""
#endif

/* The folder with the emulator's sources. */
static const char *emulator(void) {
  const char *folder = getenv("SOFTWARE_EMULATOR");
  return folder ? folder : SOFTWARE_EMULATOR_HERE;
}

static yirage_status count_devices(uint32_t *devices, struct yirage_message *message) {
  if (!*emulator()) return fail(message, YIRAGE_FAILED, "SOFTWARE_EMULATOR is not set", "name the folder of the emulator's sources");
  *devices = 1;
  return YIRAGE_DONE;
}

static yirage_status describe(uint32_t ordinal, struct yirage_device_info *info, struct yirage_message *message) {
  if (ordinal != 0) return fail(message, YIRAGE_FAILED, "there is one device", "");
  strcpy(info->name, "Software device");
  strcpy(info->arch, "emulated");
  strcpy(info->driver_version, "1");
  strcpy(info->dialect, DIALECT);
  info->cores = 1;
  info->threads = 1024;
  info->shared_bytes = 48 << 10;
  info->grid[0] = 0x7fffffff;
  info->grid[1] = info->grid[2] = 65535;
  info->software = 1;
  info->in_flight = 1;
  return YIRAGE_DONE;
}

/* Runs a command in the device's folder. What it says on standard error is what is wrong. */
static yirage_status command(struct yirage_device *device, const char *line, const char *what, struct yirage_message *message) {
  char whole[4096];
  const char *compiler = getenv("CXX");
  snprintf(whole, sizeof whole, "cd '%s' && { %s %s; } 2>log", device->folder, compiler ? compiler : "c++", line);
  if (system(whole) == 0) return YIRAGE_DONE;
  char path[128], said[2048] = "";
  snprintf(path, sizeof path, "%s/log", device->folder);
  FILE *log = fopen(path, "r");
  if (log) {
    said[fread(said, 1, sizeof said - 1, log)] = 0;
    fclose(log);
  }
  return fail(message, YIRAGE_FAILED, what, said);
}

static yirage_status open_device(uint32_t ordinal, struct yirage_device **opened, struct yirage_message *message) {
  if (ordinal != 0) return fail(message, YIRAGE_FAILED, "there is one device", "");
  struct yirage_device *device = calloc(1, sizeof *device);
  if (!device) return fail(message, YIRAGE_OUT_OF_MEMORY, "no memory for a device", "");
  strcpy(device->folder, "/tmp/yirage-software-XXXXXX");
  if (!mkdtemp(device->folder)) {
    free(device);
    return fail(message, YIRAGE_FAILED, "no folder below /tmp", "");
  }
  char line[2048];
  snprintf(line, sizeof line, "-std=c++17 -O1 -fPIC -U_FORTIFY_SOURCE -c -o grid.o '%s/grid.cpp'", emulator());
  const yirage_status status = command(device, line, "the emulator is not compiled", message);
  if (status == YIRAGE_DONE)
    *opened = device;
  else
    free(device);
  return status;
}

static void close_device(struct yirage_device *device) {
  char line[128];
  snprintf(line, sizeof line, "rm -rf '%s'", device->folder);
  if (system(line) != 0) fprintf(stderr, "%s is left behind\n", device->folder);
  free(device);
}

/* A buffer's number is its address. */
static yirage_status alloc_buffer(struct yirage_device *device, uint64_t bytes, uint64_t *buffer, struct yirage_message *message) {
  (void)device;
  void *memory = NULL;
  if (bytes > SIZE_MAX - 256 || posix_memalign(&memory, 256, bytes ? bytes : 1) != 0)
    return fail(message, YIRAGE_OUT_OF_MEMORY, "no memory", "");
  *buffer = (uint64_t)(uintptr_t)memory;
  return YIRAGE_DONE;
}

static void free_buffer(struct yirage_device *device, uint64_t buffer) {
  (void)device;
  free((void *)(uintptr_t)buffer);
}

static char *at(struct yirage_slice slice) { return (char *)(uintptr_t)slice.buffer + slice.offset; }

static yirage_status upload(struct yirage_device *device, const void *from, struct yirage_slice to, struct yirage_message *message) {
  (void)device, (void)message;
  memcpy(at(to), from, to.bytes);
  return YIRAGE_DONE;
}

static yirage_status download(struct yirage_device *device, struct yirage_slice from, void *to, struct yirage_message *message) {
  (void)device, (void)message;
  memcpy(to, at(from), from.bytes);
  return YIRAGE_DONE;
}

/* Keeps a command in the graph that is being captured. */
static yirage_status keep(struct graph *graph, struct command command, struct yirage_message *message) {
  if (graph->count == graph->room) {
    const size_t room = graph->room ? 2 * graph->room : 64;
    struct command *more = realloc(graph->commands, room * sizeof *more);
    if (!more) {
      graph->failed = 1;
      return fail(message, YIRAGE_OUT_OF_MEMORY, "no memory for a graph", "");
    }
    graph->commands = more;
    graph->room = room;
  }
  graph->commands[graph->count++] = command;
  return YIRAGE_DONE;
}

static yirage_status copy(struct yirage_device *device, struct yirage_slice from, struct yirage_slice to, struct yirage_message *message) {
  if (device->capture) return keep(device->capture, (struct command){.kind = COPY, .from = from, .to = to}, message);
  memcpy(at(to), at(from), from.bytes);
  return YIRAGE_DONE;
}

static yirage_status fill(struct yirage_device *device, struct yirage_slice slice, uint8_t byte, struct yirage_message *message) {
  if (device->capture) return keep(device->capture, (struct command){.kind = FILL, .to = slice, .byte = byte}, message);
  memset(at(slice), byte, slice.bytes);
  return YIRAGE_DONE;
}

/* A source between what the emulator gives a kernel and what runs one by its place. */
static void write_source(FILE *file, const char *source, size_t bytes, const struct yirage_kernel *kernels, size_t count) {
  fputs("#include <setjmp.h>\n#include <stdio.h>\n#include \"grid.hpp\"\n#include \"cuda.hpp\"\n", file);
  fwrite(source, 1, bytes, file);
  for (size_t kernel = 0; kernel < count; ++kernel) {
    fprintf(file, "\nstatic void run_%zu(const emulator::Buffer* b) { %s(", kernel, kernels[kernel].name);
    for (uint32_t buffer = 0; buffer < kernels[kernel].buffers; ++buffer) fprintf(file, "%sb[%u]", buffer ? ", " : "", buffer);
    fputs("); }", file);
  }
  fputs("\nstatic const struct { const char* name; unsigned threads; void (*run)(const emulator::Buffer*); } all[] = {", file);
  for (size_t kernel = 0; kernel < count; ++kernel)
    fprintf(file, "{\"%s\", %u, run_%zu},", kernels[kernel].name, kernels[kernel].threads, kernel);
  fputs("};\nstatic jmp_buf land;\nstatic char said[512];\n"
        "void emulator::failed(const char* text) { snprintf(said, sizeof said, \"%s\", text); longjmp(land, 1); }\n"
        "extern \"C\" const char* run(unsigned at, void* const* buffers, const unsigned* grid) {\n"
        "  if (setjmp(land)) return said;\n"
        "  emulator::run_grid({all[at].name, all[at].run, (const emulator::Buffer*)buffers, all[at].threads,\n"
        "                      {grid[0], grid[1], grid[2]}, 1});\n"
        "  return nullptr;\n}\n",
        file);
}

static yirage_status load(struct yirage_device *device, const char *source, size_t bytes, const struct yirage_kernel *kernels,
                          size_t count, uint64_t *loaded, struct yirage_message *message) {
  char path[128], line[2048];
  const unsigned long long number = ++device->modules;
  snprintf(path, sizeof path, "%s/%llu.cpp", device->folder, number);
  FILE *file = fopen(path, "w");
  if (!file) return fail(message, YIRAGE_FAILED, path, "it cannot be written");
  write_source(file, source, bytes, kernels, count);
  if (fclose(file) != 0) return fail(message, YIRAGE_FAILED, path, "it cannot be written");
  snprintf(line, sizeof line,
           "'@%s/options' '-I%s' -DEMULATED_SUBGROUP=%uu -U_FORTIFY_SOURCE -fPIC -shared -o %llu.so %llu.cpp grid.o -lm", emulator(),
           emulator(), SUBGROUP, number, number);
  const yirage_status status = command(device, line, "a source is not compiled", message);
  if (status != YIRAGE_DONE) return status;
  struct module *module = calloc(1, sizeof *module);
  char **names = calloc(count, sizeof *names);
  if (!module || !names) return fail(message, YIRAGE_OUT_OF_MEMORY, "no memory for a module", "");
  snprintf(path, sizeof path, "%s/%llu.so", device->folder, number);
  module->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  module->run = module->library ? (run_function)dlsym(module->library, "run") : NULL;
  if (!module->run) return fail(message, YIRAGE_FAILED, "a module is not loaded", dlerror());
  module->names = names;
  module->count = count;
  for (size_t kernel = 0; kernel < count; ++kernel) names[kernel] = strdup(kernels[kernel].name);
  *loaded = (uint64_t)(uintptr_t)module;
  return YIRAGE_DONE;
}

static void unload(struct yirage_device *device, uint64_t number) {
  (void)device;
  struct module *module = (struct module *)(uintptr_t)number;
  for (size_t kernel = 0; kernel < module->count; ++kernel) free(module->names[kernel]);
  free(module->names);
  dlclose(module->library);
  free(module);
}

/* A launch with slices and a name of its own: the caller's go away with its call. */
static yirage_status keep_launch(struct graph *graph, const struct yirage_launch *launch, struct yirage_message *message) {
  struct yirage_slice *slices = malloc((launch->slice_count + 1) * sizeof *slices);
  char *name = strdup(launch->kernel);
  if (!slices || !name) {
    free(slices), free(name);
    graph->failed = 1;
    return fail(message, YIRAGE_OUT_OF_MEMORY, "no memory for a graph", "");
  }
  memcpy(slices, launch->slices, launch->slice_count * sizeof *slices);
  struct command command = {.kind = LAUNCH, .launch = *launch};
  command.launch.slices = slices;
  command.launch.kernel = name;
  const yirage_status status = keep(graph, command, message);
  if (status != YIRAGE_DONE) free(slices), free(name);
  return status;
}

static yirage_status launch(struct yirage_device *device, const struct yirage_launch *launch, struct yirage_message *message) {
  if (device->capture) return keep_launch(device->capture, launch, message);
  const struct module *module = (const struct module *)(uintptr_t)launch->module;
  void *buffers[256];
  if (launch->slice_count > sizeof buffers / sizeof *buffers) return fail(message, YIRAGE_UNSUPPORTED, "more than 256 buffers", "");
  for (size_t slice = 0; slice < launch->slice_count; ++slice) buffers[slice] = at(launch->slices[slice]);
  for (size_t kernel = 0; kernel < module->count; ++kernel) {
    if (strcmp(module->names[kernel], launch->kernel) != 0) continue;
    const char *wrong = module->run((uint32_t)kernel, buffers, launch->grid);
    return wrong ? fail(message, YIRAGE_FAILED, wrong, "") : YIRAGE_DONE;
  }
  return fail(message, YIRAGE_FAILED, "the module has no such kernel", "");
}

static yirage_status signal_queue(struct yirage_device *device, uint64_t *value, struct yirage_message *message) {
  (void)message;
  *value = __atomic_add_fetch(&device->signalled, 1, __ATOMIC_ACQ_REL);
  return YIRAGE_DONE;
}

static yirage_status reached(struct yirage_device *device, uint64_t *value, struct yirage_message *message) {
  (void)message;
  *value = __atomic_load_n(&device->signalled, __ATOMIC_ACQUIRE);
  return YIRAGE_DONE;
}

static yirage_status wait_for(struct yirage_device *device, uint64_t value, uint64_t nanoseconds, struct yirage_message *message) {
  (void)nanoseconds;
  if (value <= __atomic_load_n(&device->signalled, __ATOMIC_ACQUIRE)) return YIRAGE_DONE;
  return fail(message, YIRAGE_NOT_YET, "nobody has signalled that value", "");
}

static yirage_status begin(struct yirage_device *device, struct yirage_message *message) {
  if (device->capture) return fail(message, YIRAGE_FAILED, "a capture was begun before", "");
  device->capture = calloc(1, sizeof *device->capture);
  return device->capture ? YIRAGE_DONE : fail(message, YIRAGE_OUT_OF_MEMORY, "no memory for a graph", "");
}

/* A graph's number is its address. */
static void release(struct yirage_device *device, uint64_t number) {
  (void)device;
  struct graph *graph = (struct graph *)(uintptr_t)number;
  for (size_t at = 0; at < graph->count; ++at) {
    if (graph->commands[at].kind != LAUNCH) continue;
    free((void *)graph->commands[at].launch.slices);
    free((void *)graph->commands[at].launch.kernel);
  }
  free(graph->commands);
  free(graph);
}

static yirage_status end(struct yirage_device *device, uint64_t *number, struct yirage_message *message) {
  struct graph *graph = device->capture;
  if (!graph) return fail(message, YIRAGE_FAILED, "no capture was begun", "");
  device->capture = NULL;
  if (graph->failed) {
    release(device, (uint64_t)(uintptr_t)graph);
    return fail(message, YIRAGE_FAILED, "a command was not kept", "");
  }
  *number = (uint64_t)(uintptr_t)graph;
  return YIRAGE_DONE;
}

static yirage_status replay(struct yirage_device *device, uint64_t number, struct yirage_message *message) {
  const struct graph *graph = (const struct graph *)(uintptr_t)number;
  yirage_status status = YIRAGE_DONE;
  for (size_t at = 0; at < graph->count && status == YIRAGE_DONE; ++at) {
    const struct command *command = &graph->commands[at];
    switch (command->kind) {
      case LAUNCH: status = launch(device, &command->launch, message); break;
      case COPY: status = copy(device, command->from, command->to, message); break;
      case FILL: status = fill(device, command->to, command->byte, message); break;
    }
  }
  return status;
}

static yirage_status timestamp(struct yirage_device *device, uint64_t *nanoseconds, struct yirage_message *message) {
  (void)device, (void)message;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  *nanoseconds = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
  return YIRAGE_DONE;
}

const struct yirage_backend *yirage_backend(void) {
  static const struct yirage_graphs graphs = {
      .bytes = sizeof graphs, .begin = begin, .end = end, .replay = replay, .release = release};
  static const struct yirage_clock clock = {.bytes = sizeof clock, .timestamp = timestamp};
  static const struct yirage_backend backend = {
      .version = YIRAGE_BACKEND_VERSION,
      .bytes = sizeof backend,
      .name = "software",
      .title = "a device in software, an example",
      .count = count_devices,
      .describe = describe,
      .open = open_device,
      .close = close_device,
      .alloc = alloc_buffer,
      .free = free_buffer,
      .upload = upload,
      .download = download,
      .copy = copy,
      .fill = fill,
      .load = load,
      .unload = unload,
      .launch = launch,
      .signal = signal_queue,
      .reached = reached,
      .wait = wait_for,
      .graphs = &graphs,
      .clock = &clock,
  };
  return &backend;
}

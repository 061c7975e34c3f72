// Launches of kernels, which run one at a time.
#include <string.h>

#include <algorithm>

#include "memory.hpp"
#include "modules.hpp"
#include "streams.hpp"
#include "vendor.hpp"

namespace {

const uint64_t THREADS = 1024, GRID_X = 0x7fffffff, GRID_YZ = 65535;

// The parameters' bytes as they were at the call, each at a place for any type.
struct Parameters {
  std::vector<std::vector<max_align_t>> all;

  Parameters(const ModuleKernel& kernel, void** given) {
    for (unsigned at = 0; at < kernel.parameters; ++at) {
      all.emplace_back(kernel.sizes[at] / sizeof(max_align_t) + 1);
      memcpy(all.back().data(), given[at], kernel.sizes[at]);
    }
  }
};

// What a launch that begins early may not touch before it waits: all that kernels of its stream write, since the one ahead may be
// about to.
typedef std::vector<Address> Buffers;
thread_local const Buffers* held_back;
void hold_back(bool withheld) {
  Lock lock(machine().lock);
  withhold(*held_back, withheld);
}

// How a launch is meant beside its sizes.
struct LaunchMode {
  // It may begin before the one ahead of it has ended.
  bool early;
  // All of its blocks are on the device at once.
  bool cooperative;
};

Outcome run(const Function& function, const Parameters& parameters, emulator::Word threads, emulator::Index grid,
            const Buffers* early, bool together) {
  static std::mutex one_at_a_time;
  std::unique_lock<std::mutex> turn(one_at_a_time);
  const ModuleKernel& kernel = *function.kernel;
  emulator::Launch launch = {kernel.name, kernel.run, nullptr, threads, grid, 0, early ? hold_back : nullptr, together};
  {
    Lock lock(machine().lock);
    const std::string name = std::string("kernel `") + kernel.name + "`: ";
    ++machine().counted.launches;
    if (const Code code = injected("kernel")) return {code, name + "it was told to fail"};
    if (function.module->unloaded) return {ILLEGAL_ADDRESS, name + "its module was unloaded before it ran"};
    launch.seed = draw_seed();
    held_back = early;
    machine().counted.early_launches += early != nullptr;
  }
  std::vector<emulator::Buffer> places;
  for (const auto& parameter : parameters.all) places.push_back({(void*)parameter.data()});
  launch.buffers = places.data();
  const Outcome outcome = run_guarded([&] { function.module->table->run_grid(launch); }, function.module->table->describe);
  if (early) hold_back(false);
  return outcome;
}

// Notes what a launch may write.
void note_written(const Context& context, Stream& stream, const ModuleKernel& kernel, void** given) {
  for (unsigned at = 0; at < kernel.parameters; ++at) {
    Address address;
    if (!kernel.writes[at]) continue;
    memcpy(&address, given[at], sizeof address);
    if (const Address buffer = buffer_of(context, address)) stream.written.insert(buffer);
  }
}

// `CUlaunchConfig` and `CUlaunchAttribute`.
struct LaunchAttribute {
  int id;
  char pad[4];
  int value;
  char rest[60];
};
struct LaunchConfig {
  unsigned grid[3], block[3], shared;
  Handle stream;
  const LaunchAttribute* attributes;
  unsigned count;
};
static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56, "as in cuda.h");

const int COOPERATIVE = 2, PROGRAMMATIC_SERIALIZATION = 6, FIRST_EARLY = 90;

// Of a multiprocessor.
const unsigned MOST_THREADS = 2048, SHARED = 233472, SHARED_OF_SYSTEM = 1024, REGISTERS = 65536, REGISTERS_OF_THREAD = 255;

unsigned blocks_of_multiprocessor(const ModuleKernel& kernel, unsigned threads, unsigned shared) {
  const unsigned by_registers = REGISTERS / (REGISTERS_OF_THREAD * threads);
  return std::min({MOST_THREADS / threads, SHARED / (kernel.shared + shared + SHARED_OF_SYSTEM), by_registers ? by_registers : 1u});
}

Code launch(const char* call, Handle handle, const unsigned (&grid)[3], const unsigned (&block)[3], unsigned shared,
            Handle stream_handle, LaunchMode mode, void** parameters, void** extra) {
  return Code(in_context(call, [&](Context& context, Lock&) {
    std::shared_ptr<Function> function;
    std::shared_ptr<Stream> stream;
    TRY(of_context(machine().functions, handle, context, function));
    TRY(stream_of(context, stream_handle, stream));
    const ModuleKernel& kernel = *function->kernel;
    if (!grid[0] || !grid[1] || !grid[2] || grid[0] > GRID_X || grid[1] > GRID_YZ || grid[2] > GRID_YZ) return INVALID_VALUE;
    if (!block[0] || !block[1] || !block[2]) return INVALID_VALUE;
    if (block[0] > THREADS || block[1] > THREADS || block[2] > 64) return INVALID_VALUE;
    if (uint64_t(block[0]) * block[1] * block[2] > THREADS) return INVALID_VALUE;
    if (block[0] * block[1] * block[2] > kernel.threads) return LAUNCH_OUT_OF_RESOURCES;
    if (shared > function->most_shared) return INVALID_VALUE;
    if (kernel.parameters && !parameters) return INVALID_VALUE;
    if (uint64_t(grid[0]) * block[0] > VENDOR.threads_along) return INVALID_CONFIGURATION;
    // The emulator numbers threads along one axis.
    if (block[1] > 1 || block[2] > 1 || extra) return NOT_SUPPORTED;
    const uint64_t blocks = uint64_t(grid[0]) * grid[1] * grid[2];
    if (mode.cooperative && blocks > uint64_t(multiprocessors()) * blocks_of_multiprocessor(kernel, block[0], shared))
      return COOPERATIVE_LAUNCH_TOO_LARGE;
    note_written(context, *stream, kernel, parameters);
    const auto copied = std::make_shared<Parameters>(kernel, parameters);
    const emulator::Index all = {grid[0], grid[1], grid[2]};
    const unsigned threads = block[0];
    const auto buffers = mode.early ? std::make_shared<Buffers>(stream->written.begin(), stream->written.end()) : nullptr;
    return submit(*stream, [function, copied, threads, all, buffers, mode] {
      return run(*function, *copied, threads, all, buffers.get(), mode.cooperative);
    });
  }));
}

}  // namespace

API int cuLaunchKernel(Handle handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                       unsigned block_z, unsigned shared, Handle stream, void** parameters, void** extra) {
  return launch(__func__, handle, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, stream, {}, parameters, extra);
}

#if defined(FAKE_VENDOR_CUDA)
API int cuLaunchKernelEx(const LaunchConfig* config, Handle handle, void** parameters, void** extra) {
  if (!config || (config->count && !config->attributes)) return INVALID_VALUE;
  LaunchMode mode = {};
  for (unsigned at = 0; at < config->count; ++at) {
    const bool is_on = config->attributes[at].value != 0;
    switch (config->attributes[at].id) {
      case COOPERATIVE: mode.cooperative |= is_on; break;
      case PROGRAMMATIC_SERIALIZATION: mode.early |= is_on; break;
      default: return NOT_SUPPORTED;
    }
  }
  if (mode.early && capability_of(machine().settings.arch) < FIRST_EARLY) return NOT_SUPPORTED;
  return launch(__func__, handle, config->grid, config->block, config->shared, config->stream, mode, parameters, extra);
}

API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Handle handle, int threads, size_t shared) {
  return in_context(__func__, [&](Context& context, Lock&) {
    std::shared_ptr<Function> function;
    if (!blocks || threads <= 0 || unsigned(threads) > THREADS) return INVALID_VALUE;
    TRY(of_context(machine().functions, handle, context, function));
    *blocks = int(blocks_of_multiprocessor(*function->kernel, unsigned(threads), unsigned(shared)));
    return SUCCESS;
  });
}
#endif

// Launches of kernels, which run one at a time.
#include <string.h>

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

Outcome run(const Function& function, const Parameters& parameters, emulator::Word threads, emulator::Index grid) {
  static std::mutex one_at_a_time;
  std::unique_lock<std::mutex> turn(one_at_a_time);
  const ModuleKernel& kernel = *function.kernel;
  emulator::Launch launch = {kernel.name, kernel.run, nullptr, threads, grid, 0};
  {
    Lock lock(machine().lock);
    const std::string name = std::string("kernel `") + kernel.name + "`: ";
    ++machine().counted.launches;
    if (const Code code = injected("kernel")) return {code, name + "it was told to fail"};
    if (function.module->unloaded) return {ILLEGAL_ADDRESS, name + "its module was unloaded before it ran"};
    launch.seed = draw_seed();
  }
  std::vector<emulator::Buffer> places;
  for (const auto& parameter : parameters.all) places.push_back({(void*)parameter.data()});
  launch.buffers = places.data();
  return run_guarded([&] { function.module->table->run_grid(launch); }, function.module->table->describe);
}

}  // namespace

API int cuLaunchKernel(Handle handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                       unsigned block_z, unsigned shared, Handle stream_handle, void** parameters, void** extra) {
  return in_context(__func__, [&](Context& context, Lock&) {
    std::shared_ptr<Function> function;
    std::shared_ptr<Stream> stream;
    TRY(of_context(machine().functions, handle, context, function));
    TRY(stream_of(context, stream_handle, stream));
    const ModuleKernel& kernel = *function->kernel;
    if (!grid_x || !grid_y || !grid_z || grid_x > GRID_X || grid_y > GRID_YZ || grid_z > GRID_YZ) return INVALID_VALUE;
    if (!block_x || !block_y || !block_z) return INVALID_VALUE;
    if (block_x > THREADS || block_y > THREADS || block_z > 64) return INVALID_VALUE;
    if (uint64_t(block_x) * block_y * block_z > THREADS) return INVALID_VALUE;
    if (block_x * block_y * block_z > kernel.threads) return LAUNCH_OUT_OF_RESOURCES;
    if (shared > function->most_shared) return INVALID_VALUE;
    if (kernel.parameters && !parameters) return INVALID_VALUE;
    if (uint64_t(grid_x) * block_x > VENDOR.threads_along) return INVALID_CONFIGURATION;
    // The emulator numbers threads along one axis.
    if (block_y > 1 || block_z > 1 || extra) return NOT_SUPPORTED;
    const auto copied = std::make_shared<Parameters>(kernel, parameters);
    const emulator::Index grid = {grid_x, grid_y, grid_z};
    return submit(*stream, [function, copied, block_x, grid] { return run(*function, *copied, block_x, grid); });
  });
}

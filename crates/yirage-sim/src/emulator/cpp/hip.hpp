// Functions of clang for AMD's processors. The words of declarations are macros, as HIP's own headers have them.
#include "emulator.hpp"

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(threads)
#define __forceinline__ inline
#define EMULATED_PARAMETERS

inline unsigned int __builtin_amdgcn_workitem_id_x() { return emulator::thread.x; }
inline unsigned int __builtin_amdgcn_workgroup_id_x() { return emulator::group.x; }
inline unsigned int __builtin_amdgcn_workgroup_id_y() { return emulator::group.y; }
inline unsigned int __builtin_amdgcn_workgroup_id_z() { return emulator::group.z; }
inline void __builtin_amdgcn_fence(int, const char*) {}
inline void __builtin_amdgcn_s_barrier() { emulator::barrier(); }
inline int __builtin_amdgcn_ds_bpermute(int bytes, int x) {
  return emulator::exchanged(x, (unsigned int)bytes >> 2, EMULATED_SUBGROUP);
}

// A step of a plan as one kernel: its blocks are all on the device at once and stay to the step's end. Each runs its groups of every
// launch, in the order of the launches, and before those of one it waits for the launches whose bytes they touch: for as many blocks
// as had groups of them. So a block is held up by what it reads and overwrites and by nothing else, and reads weights ahead meanwhile
// where a kernel's body does (`wait_for_earlier`). Of kernels of few threads a block runs several groups at once, each by threads, a
// barrier and memory of its own.
//
// `table`: how many launches there are, how many blocks, where the lists of waits begin; for each launch `LAUNCH_WORDS`: its kernel,
// whether its body waits by itself, the three extents of its grid, its first wait and how many it has, its first pointer, how many of
// its groups a block runs at once. `done` counts the blocks that have ended each launch, from 0 on.

struct GroupNumber { Word x, y, z; };
struct ThreadNumber { Word x; };

// A pointer of a kernel, to whatever it takes.
struct KernelPointer {
  unsigned long long address;
  template <class T>
  __device__ operator T*() const { return (T*)address; }
};

struct PersistentTable {
  const Word* sizes;
  const Word* table;
  Word* done;
};

// What a block still waits for before it runs a launch's groups.
struct TaskWaits {
  const Word* first;
  Word count;
};

__shared__ PersistentTable step;
__shared__ TaskWaits waits;
__shared__ GroupNumber groups_of_block[MOST_AT_ONCE];
__shared__ Words4 block_memory[BLOCK_BYTES / 16];

const Word LAUNCH_WORDS = 16, HEADER_WORDS = 4;

DEVICE const Word* launch_of(Word number) { return step.table + HEADER_WORDS + number * LAUNCH_WORDS; }

// Groups along an axis: so many, or a size of the step times and over numbers.
DEVICE Word extent(const Word* of) {
  if (of[0] == 0) return of[1];
  return (Word)(((unsigned long long)step.sizes[of[0] - 1] * of[1] + of[2] - 1) / of[2]);
}
DEVICE Word groups_of(const Word* launch) { return extent(launch + 2) * extent(launch + 5) * extent(launch + 8); }
DEVICE Word at_once(const Word* launch) { return launch[14]; }

// Blocks that have groups of a launch. One without a group is passed on by the first block.
DEVICE Word blocks_of(const Word* launch) {
  const Word wanted = (groups_of(launch) + at_once(launch) - 1) / at_once(launch), blocks = step.table[1];
  return wanted == 0 ? 1 : wanted < blocks ? wanted : blocks;
}

// For the first thread of a block.
DEVICE void finish_waits() {
  for (Word at = 0; at < waits.count; ++at) {
    const Word earlier = waits.first[at];
    wait_at_least(step.done + earlier, blocks_of(launch_of(earlier)));
  }
  waits.count = 0;
}

// Of a thread that runs a kernel of so many threads a group: its number in its group, its group, and where its group meets and has
// its memory.
template <Word THREADS>
DEVICE ThreadNumber thread_of_task() {
  const ThreadNumber number = {block_thread() % THREADS};
  return number;
}
template <Word THREADS>
DEVICE const GroupNumber& group_of_task() { return groups_of_block[block_thread() / THREADS]; }
template <Word THREADS>
DEVICE void meet_task() { meet_threads<THREADS>(1 + block_thread() / THREADS); }
template <Word THREADS, Word BYTES>
DEVICE Words4* memory_of_task() { return block_memory + block_thread() / THREADS * (BYTES / 16); }
// The end of the block's waits, for a kernel that waits by itself: it has the block alone.
template <Word THREADS>
DEVICE void wait_for_launches() {
  if (block_thread() == 0) finish_waits();
  meet_task<THREADS>();
}

#define TASK_FUNCTION static __device__ KEPT_APART
#undef threadIdx
#define threadIdx thread_of_task<TASK_THREADS>()
#undef blockIdx
#define blockIdx group_of_task<TASK_THREADS>()
#define group_memory memory_of_task<TASK_THREADS, TASK_BYTES>()
#define __syncthreads() meet_task<TASK_THREADS>()
#define wait_for_earlier() wait_for_launches<TASK_THREADS>()

// KERNELS

DEVICE void run_launch(const Word* launch, Word groups, const unsigned long long* pointers) {
  const Word most = at_once(launch), x = extent(launch + 2), y = extent(launch + 5), stride = step.table[1] * most;
  for (Word first = own_group() * most; first < groups; first += stride) {
    const Word together = groups - first < most ? groups - first : most;
    if (block_thread() < together) {
      const Word group = first + block_thread();
      const GroupNumber number = {group % x, group / x % y, group / x / y};
      groups_of_block[block_thread()] = number;
    }
    meet_all();
    run_groups(launch[0], together, pointers + launch[13]);
    // The next groups have the same memory.
    meet_all();
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 1) persistent_step(const Word* sizes, const Word* table,
    const unsigned long long* pointers, Word* done) {
  if (block_thread() == 0) {
    const PersistentTable own = {sizes, table, done};
    step = own;
  }
  meet_all();
  const Word launches = table[0];
  for (Word number = 0; number < launches; ++number) {
    const Word* launch = launch_of(number);
    const Word groups = groups_of(launch), own = own_group();
    if (own >= blocks_of(launch)) continue;
    if (block_thread() == 0) {
      const TaskWaits all = {table + table[2] + launch[11], launch[12]};
      waits = all;
      if (!launch[1] || groups == 0) finish_waits();
    }
    run_launch(launch, groups, pointers);
    if (block_thread() == 0) raise(done + number);
  }
}

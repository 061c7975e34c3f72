// Launches on the processor: fibers, the places where they meet, and the groups of a grid.
//
// A thread of a group is a fiber. The threads of a group run one after the other, each until it meets the others of its group or
// subgroup or ends, in an order that is drawn for each such round, in which some may be held back. The groups of a launch run one
// after the other; where all of them are there together, each for some rounds, in an order that is drawn too, in which some are held
// back while others run ahead. Who asks for a launch, and what becomes of one that goes wrong, is the program's affair that this is
// linked to.
#include "grid.hpp"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <vector>

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "the emulator knows how to switch fibers on x86-64 and AArch64 alone"
#endif

// Keeps what a function may not change, and goes on where another fiber stopped.
extern "C" void emulator_switch(void** stopped, void* next);
#if defined(__x86_64__)
asm(R"(
.text
.globl emulator_switch
emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
// Words that a switch takes off a stack, of which the last is where it goes on, and one that keeps the stack aligned.
static const int SAVED = 8, RETURN = 6;
#else
asm(R"(
.text
.globl emulator_switch
emulator_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
)");
static const int SAVED = 20, RETURN = 11;
#endif

namespace emulator {

Index thread, group;
Word threads;
unsigned long long group_run;

// Where the variables of a group begin and end, if the program has some.
extern "C" __attribute__((weak)) char __start_group_memory[], __stop_group_memory[];

namespace {

enum Meeting : Word { NOWHERE, BARRIER, EARLIER, SOME_THREADS, SUBGROUP_GIVES, SUBGROUP_TAKES, COUNTER, THE_END };

struct Fiber {
  void* stopped;
  Meeting at;
  // Threads that meet there, from a multiple of so many on.
  Word width;
  bool waits;
  // What a thread waits for alone.
  const Word* counter;
  Word least;
};

// The threads of a group, and where it is.
struct Group {
  Index index;
  // Its place among those that are there together, and its number among all.
  Word place;
  unsigned long long number;
  std::vector<Fiber> fibers;
  std::vector<Word> given, order;
  // Threads that are held back.
  unsigned long long held;
  // Whether it has waited for what came before the launch.
  bool waited;
  bool over;
  // Whether all of its threads waited when it was left, some for counters.
  bool blocked;
  // Its variables while another one runs.
  std::vector<char> memory;
};

// Threads that are held back together, so that others run ahead of them.
const Word HELD = 32;
// Words that a thread gives to its subgroup at most.
const Word MOST_GIVEN = 8;

const size_t STACK = 1 << 20;

// Stacks of fibers with a page that nobody may touch below each. They are made once for as many as there have been.
struct Stacks {
  char* memory = nullptr;
  Word made = 0;

  ~Stacks() { free(); }
  void free() {
    if (memory) munmap(memory, STACK * made);
    memory = nullptr;
    made = 0;
  }
  void make(Word wanted) {
    if (wanted <= made) return;
    free();
    memory = map(STACK * wanted);
    for (Word at = 0; at < wanted; ++at) mprotect(memory + STACK * at, PAGE, PROT_NONE);
    made = wanted;
  }
};

Launch running = {"", nullptr, nullptr, 0, {0, 0, 0}, 0, nullptr};
// The group that runs now.
Group* now;
unsigned long long groups_begun;
Stacks stacks;
void* scheduler;
unsigned long long drawn;

Word draw(Word below) {
  drawn ^= drawn << 13;
  drawn ^= drawn >> 7;
  drawn ^= drawn << 17;
  return Word((drawn >> 16) % below);
}

Fiber& meet(Meeting at, Word width) {
  Fiber& fiber = now->fibers[thread.x];
  fiber.at = at;
  fiber.width = width;
  fiber.waits = true;
  return fiber;
}

void stop(Fiber& fiber) { emulator_switch(&fiber.stopped, scheduler); }

void fiber_main() {
  running.run(running.buffers);
  stop(meet(THE_END, threads));
  fail("a thread that has ended runs");
}

// An order of so many: ascending, descending or any.
void draw_order(std::vector<Word>& order) {
  const Word count = Word(order.size());
  switch (draw(3)) {
    case 0:
      for (Word at = 0; at < count; ++at) order[at] = at;
      break;
    case 1:
      for (Word at = 0; at < count; ++at) order[at] = count - 1 - at;
      break;
    default:
      for (Word at = count - 1; at > 0; --at) {
        const Word other = draw(at + 1), here = order[at];
        order[at] = order[other];
        order[other] = here;
      }
  }
}

// Which are held back until no other can run: in half of the cases none.
unsigned long long draw_held() { return draw(2) ? 0 : draw(~0u) | (unsigned long long)draw(~0u) << 32; }

// A group at the beginning of its threads.
void begin(Group& one, Word place, const Index& index) {
  one.index = index;
  one.place = place;
  one.number = ++groups_begun;
  one.fibers.resize(threads);
  one.given.resize(threads * MOST_GIVEN);
  one.order.resize(threads);
  for (Word at = 0; at < threads; ++at) {
    void** top = (void**)(stacks.memory + STACK * (place * threads + at + 1)) - SAVED;
    memset(top, 0, SAVED * sizeof *top);
    top[RETURN] = (void*)fiber_main;
    one.fibers[at] = {top, NOWHERE, 0, false, nullptr, 0};
    one.order[at] = at;
  }
  one.held = draw_held();
  one.waited = one.over = one.blocked = false;
}

void run_now(Group& one) {
  now = &one;
  group = one.index;
  group_run = one.number;
}

// Runs threads that wait for no other, each until it meets some: all of them, or those that are not held back. Whether any ran.
bool run_round(unsigned long long held) {
  bool ran = false;
  for (Word at : now->order) {
    if (now->fibers[at].waits || held >> (at / HELD % 64) & 1) continue;
    thread = {at, 0, 0};
    emulator_switch(&scheduler, now->fibers[at].stopped);
    ran = true;
  }
  return ran;
}

bool is_of_group(const Fiber& fiber) { return fiber.at == BARRIER || fiber.at == EARLIER || fiber.at == THE_END; }

// Lets threads go on whose counters have come so far. Whether there were any, and whether others wait for theirs.
bool release_counters(bool& waiting) {
  bool released = false;
  for (Fiber& fiber : now->fibers) {
    if (!fiber.waits || fiber.at != COUNTER) continue;
    fiber.waits = *fiber.counter < fiber.least;
    (fiber.waits ? waiting : released) = true;
  }
  return released;
}

// Lets threads go on whose subgroups are all where they are. Whether there were any.
bool release_subgroups() {
  std::vector<Fiber>& fibers = now->fibers;
  bool released = false;
  for (Word first = 0; first < threads;) {
    const Fiber& one = fibers[first];
    if (!one.waits || one.at == COUNTER || is_of_group(one)) {
      ++first;
      continue;
    }
    const Word begin = first / one.width * one.width, behind = begin + one.width;
    const Word end = behind < threads ? behind : threads;
    bool all = begin == first;
    for (Word at = begin; at < end; ++at) all &= fibers[at].waits && fibers[at].at == one.at && fibers[at].width == one.width;
    for (Word at = begin; all && at < end; ++at) fibers[at].waits = false;
    released |= all;
    first = all ? end : first + 1;
  }
  return released;
}

// Whether threads run at all, of which all wait.
bool release_group() {
  std::vector<Fiber>& fibers = now->fibers;
  for (Word at : now->order)
    if (fibers[at].at != fibers[now->order[0]].at || !is_of_group(fibers[at])) {
      thread = {at, 0, 0};
      fail("it is not where the others meet");
    }
  if (fibers[0].at == EARLIER) now->waited = true;
  if (fibers[0].at == EARLIER && running.withhold) running.withhold(false);
  if (fibers[0].at == THE_END && running.withhold && !now->waited) {
    thread = {now->order[0], 0, 0};
    fail("it ended without waiting for what came before the launch");
  }
  if (fibers[0].at == THE_END) return false;
  for (Fiber& fiber : fibers) fiber.waits = false;
  return true;
}

// Runs a round of the group. Whether it came on.
bool advance() {
  draw_order(now->order);
  bool waiting = false;
  now->blocked = false;
  const bool ran = run_round(now->held) || run_round(0);
  if (release_counters(waiting) | release_subgroups() || ran) return true;
  now->blocked = waiting;
  if (waiting) return false;
  now->over = !release_group();
  now->held = draw_held();
  return true;
}

void wait_in_vain() {
  for (Word at : now->order)
    if (now->fibers[at].waits && now->fibers[at].at == COUNTER) thread = {at, 0, 0};
  fail("it waits for a counter that nobody raises");
}

void run_alone(Group& one, const Index& index) {
  begin(one, 0, index);
  run_now(one);
  if (running.withhold) running.withhold(true);
  while (!one.over)
    if (!advance()) wait_in_vain();
}

// Whether it would be where it was left.
bool is_blocked(const Group& one) {
  if (!one.blocked) return false;
  for (const Fiber& fiber : one.fibers)
    if (fiber.waits && fiber.at == COUNTER && *fiber.counter >= fiber.least) return false;
  return true;
}

// Gives the place of a group's variables to another.
void exchange_memory(Group& one) {
  const size_t bytes = __start_group_memory ? __stop_group_memory - __start_group_memory : 0;
  if (now == &one || bytes == 0) return;
  if (now) now->memory.assign(__start_group_memory, __start_group_memory + bytes);
  if (one.memory.empty()) one.memory.assign(bytes, char(0xa5));
  memcpy(__start_group_memory, one.memory.data(), bytes);
}

// Rounds of a group before another one's turn at most, and turns for which groups may be held back.
const Word MOST_ROUNDS = 8, MOST_HELD = 64;

void run_together(const Index& grid) {
  const Word count = grid.x * grid.y * grid.z;
  if ((unsigned long long)count * threads > MOST_THREADS) fail("it has more threads than are there together");
  stacks.make(count * threads);
  std::vector<Group> all(count);
  std::vector<Word> order(count);
  for (Word at = 0; at < count; ++at) {
    begin(all[at], at, {at % grid.x, at / grid.x % grid.y, at / grid.x / grid.y});
    order[at] = at;
  }
  now = nullptr;
  unsigned long long held = draw_held();
  Word turns = draw(MOST_HELD);
  for (Word left = count; left > 0;) {
    draw_order(order);
    bool came_on = false;
    for (Word at : order) {
      if (all[at].over || is_blocked(all[at]) || (held >> at % 64 & 1)) continue;
      exchange_memory(all[at]);
      run_now(all[at]);
      for (Word rounds = draw(MOST_ROUNDS) + 1; rounds > 0 && !now->over && advance(); --rounds) came_on = true;
      left -= now->over;
    }
    if (!came_on && held == 0) wait_in_vain();
    if (came_on && turns-- > 0) continue;
    held = came_on ? draw_held() : 0;
    turns = draw(MOST_HELD);
  }
}

}  // namespace

void describe(char* text, size_t size, const char* why) {
  snprintf(text, size, "thread %u of group %u %u %u of `%s`: %s", thread.x, group.x, group.y, group.z, running.name, why);
}

void fail(const char* why) {
  char text[400];
  describe(text, sizeof text, why);
  failed(text);
}

char* map(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) fail("no memory");
  return (char*)memory;
}

void run_grid(const Launch& launch) {
  running = launch;
  drawn = launch.seed * 0x9e3779b97f4a7c15ull | 1;
  threads = launch.threads;
  if (launch.together) return run_together(launch.grid);
  stacks.make(threads);
  static Group one;
  Index index;
  for (index.z = 0; index.z < launch.grid.z; ++index.z)
    for (index.y = 0; index.y < launch.grid.y; ++index.y)
      for (index.x = 0; index.x < launch.grid.x; ++index.x) run_alone(one, index);
}

Word thread_there() { return now->place * threads + thread.x; }

void barrier() { stop(meet(BARRIER, threads)); }

void meet_threads(Word count) { stop(meet(SOME_THREADS, count)); }

void wait_at_least(const Word* counter, Word least) {
  Fiber& fiber = meet(COUNTER, 1);
  fiber.counter = counter;
  fiber.least = least;
  stop(fiber);
}

void raise(Word* counter) { ++*counter; }

void wait_for_earlier() {
  if (running.withhold) stop(meet(EARLIER, threads));
}

const Word* gather(const Word* words, Word count, Word subgroup) {
  std::vector<Word>& given = now->given;
  for (Word at = 0; at < count; ++at) given[thread.x * MOST_GIVEN + at] = words[at];
  stop(meet(SUBGROUP_GIVES, subgroup));
  return &given[thread.x / subgroup * subgroup * MOST_GIVEN];
}

void gathered(Word subgroup) { stop(meet(SUBGROUP_TAKES, subgroup)); }

Word exchange(Word word, Word lane, Word subgroup) {
  const Word* all = gather(&word, 1, subgroup);
  const Word other = thread.x / subgroup * subgroup + lane;
  const Word taken = lane < subgroup && other < threads ? all[lane * MOST_GIVEN] : 0xa5a5a5a5u;
  gathered(subgroup);
  return taken;
}

}  // namespace emulator

// A loader with a graphics processor and a device that the processor plays.
#include <stdint.h>
#include <string.h>

#ifndef ANSWER
#define ANSWER (1u << 22 | 3u << 12 | 230)
#endif

typedef struct { uint32_t api, driver, vendor, device, kind; char name[256]; } Properties;
typedef struct { uint64_t bytes; uint32_t flags; } Heap;
typedef struct { uint32_t types, list[64], heaps; Heap heap[16]; } Memory;

static int instance, devices[2], instances;

// What tests read: instances that were made and not destroyed.
int fakeInstances(int *count) {
    *count = instances;
    return 0;
}

int vkEnumerateInstanceVersion(uint32_t *version) {
    *version = ANSWER;
    return 0;
}
int vkCreateInstance(const uint32_t *info, const void *allocator, void **made) {
    *made = &instance;
    if (*info != 1 || allocator) return -3;
    instances++;
    return 0;
}
void vkDestroyInstance(void *made, const void *allocator) { instances -= made == &instance && !allocator; }
int vkEnumeratePhysicalDevices(void *made, uint32_t *count, void **list) {
    if (made != &instance || *count < 2) return -3;
    *count = 2, list[0] = &devices[0], list[1] = &devices[1];
    return 0;
}
void vkGetPhysicalDeviceProperties(void *device, Properties *of) {
    int soft = device == &devices[1];
    *of = (Properties){ANSWER, 7, 0x1002, 0x744c, soft ? 4 : 2, ""};
    strcpy(of->name, soft ? "llvmpipe" : "Radeon");
}
void vkGetPhysicalDeviceMemoryProperties(void *device, Memory *of) {
    (void)device;
    of->heaps = 2;
    of->heap[0] = (Heap){(uint64_t)24 << 30, 1};
    of->heap[1] = (Heap){(uint64_t)99 << 30, 0};
}

// A driver of CUDA's shape with two devices. The names of its functions and its mistakes come from the command line.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef CODE
#define CODE 0
#endif
#ifndef DEVICES
#define DEVICES 2
#endif
#ifndef ANSWER
#define ANSWER 12040
#endif
#ifndef TITLE
#define TITLE "Loopback"
#endif
#ifndef CORES
#define CORES 108
#endif

#ifdef SLOW_LOAD
__attribute__((constructor)) static void slow(void) { sleep(2); }
#endif
#ifdef UNRESOLVED
int function_of_nobody(void);
int use_of_it(void) { return function_of_nobody(); }
#endif

#ifdef START
int START(unsigned flags) {
#ifdef SLOW_START
    sleep(2);
#endif
    return flags ? 1 : CODE;
}
#endif

#ifdef VERSION
int VERSION(int *version) {
    *version = ANSWER;
    return 0;
}
#endif

#ifdef VERSIONS
int VERSIONS(int *major, int *minor, int *patch) {
    *major = 5, *minor = 10, *patch = 22;
    return 0;
}
#endif

#ifdef COUNT
int COUNT(int *count) {
    *count = DEVICES;
    return 0;
}
#endif

#ifdef DEVICE
int DEVICE(int *device, int ordinal) {
    *device = 7 + ordinal;
    return 0;
}
#endif

#ifdef NAME
int NAME(char *name, int length, int device) {
#ifdef WHOLE_TITLE
    snprintf(name, length, TITLE);
#else
    snprintf(name, length, TITLE " %d", device - 7);
#endif
    return device == 7 || device == 8 ? 0 : 101;
}
#endif

#ifdef MEMORY
int MEMORY(size_t *bytes, int device) {
#ifdef MIB
    (void)device;
    *bytes = (size_t)MIB << 20;
#else
    *bytes = (size_t)(device - 6) << 33;
#endif
    return 0;
}
#endif

#ifdef ATTRIBUTE
int ATTRIBUTE(int *value, int which, int device) {
    (void)device;
    *value = which == 75 ? MAJOR : which == 76 ? MINOR : CORES;
    return 0;
}
#endif

#ifdef RECORD
int RECORD(char *record, int device) {
    (void)device;
    memset(record, 0xff, 1472);
    strcpy(record + AT, ARCH);
    return 0;
}
#endif

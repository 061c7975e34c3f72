// libcndrv.so: which devices there are, by the prototypes of cn_api.h.
#include "../machine.hpp"

#include <cstring>

static const Settings &told() {
    static const Settings settings;
    return settings;
}

EXPORTED int cnInit(unsigned flags) { return int(flags); }
EXPORTED int cnGetDriverVersion(int *major, int *minor, int *patch) {
    *major = told().version < 0 ? 5 : told().version, *minor = 10, *patch = 22;
    return kSuccess;
}
EXPORTED int cnDeviceGetCount(int *count) {
    *count = int(told().devices);
    return kSuccess;
}
EXPORTED int cnDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return kSuccess;
}
EXPORTED int cnDeviceGetName(char *name, int length, int) {
    strncpy(name, told().chip.empty() ? "MLU370-S4" : told().chip.c_str(), size_t(length));
    return kSuccess;
}
EXPORTED int cnDeviceTotalMem(size_t *bytes, int) {
    *bytes = told().memory;
    return kSuccess;
}

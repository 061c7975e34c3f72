// Of libraries beside the runtime: the machine of the runtime that lies in the same folder.
#include "machine.hpp"

#include <dlfcn.h>

#include <cstdlib>

Machine &machine() {
    static Machine *found = [] {
        Dl_info info;
        if (!dladdr(reinterpret_cast<void *>(&machine), &info)) abort();
        std::string path = info.dli_fname;
        path = path.substr(0, path.rfind('/')) + "/" RUNTIME_LIBRARY;
        void *runtime = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        auto get = reinterpret_cast<Machine *(*)()>(runtime ? dlsym(runtime, "fakeMachine") : nullptr);
        if (!get) abort();
        return get();
    }();
    return *found;
}

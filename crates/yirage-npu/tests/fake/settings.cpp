#include "settings.hpp"

#include <dlfcn.h>

#include <fstream>

namespace {
// An address of the library that this lies in.
const int here = 0;
}  // namespace

Settings::Settings() {
    Dl_info info;
    if (!dladdr(&here, &info)) return;
    std::string path = info.dli_fname;
    std::ifstream file(path.substr(0, path.rfind('/')) + "/settings");
    for (std::string line; std::getline(file, line);) {
        auto at = line.find('=');
        std::string name = line.substr(0, at), value = line.substr(at + 1);
        if (name == "devices") devices = std::stoul(value);
        if (name == "memory") memory = std::stoull(value);
        if (name == "delay_us") delay_us = std::stoul(value);
        if (name == "seed") seed = std::stoul(value);
        if (name == "chip") chip = value;
        if (name == "version") version = std::stoi(value);
        if (name == "numbers") numbers = std::stoi(value);
        if (name == "saturates") saturates = value == "1";
    }
}

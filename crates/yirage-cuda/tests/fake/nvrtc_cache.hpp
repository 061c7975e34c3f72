// Images that were made before, in a folder that is kept: most tests compile the same kernels.
#pragma once

#include <string>

// The image that was kept for a key, or nothing. Another key of the same hash is not taken for it.
std::string kept_image(const std::string& folder, const std::string& key);

// Keeps it, whole or not at all.
void keep_image(const std::string& folder, const std::string& key, const std::string& image);

#pragma once

#include <c10/core/Device.h>

#include <string>

namespace plait::runtime {

// What a program can ask of a device without its maker's headers.

bool has_cuda();
int cuda_devices();
void wait_for(c10::Device device);  // until everything that was started on it is done
// Most memory that tensors took on the device so far, or that this process took of the host's.
double peak_memory(c10::Device device);
// Whether matrix products in fp32 may run in tf32.
void allow_tf32(bool allowed);
void use_threads(int count);
// Memory that the host's allocator gets back stays with this process: otherwise every large tensor
// comes as new pages that the kernel must clear, in each step again.
void keep_freed_memory();

}  // namespace plait::runtime

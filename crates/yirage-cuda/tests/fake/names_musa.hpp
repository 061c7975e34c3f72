// Moore Threads' words.
#pragma once

#define PLATFORM "MUSA"
#define COMPILER "MTRTC"
#define ERROR_NAME(cuda, hip) "MUSA_" cuda

#define cuInit muInit
#define cuDriverGetVersion muDriverGetVersion
#define cuDeviceGetCount muDeviceGetCount
#define cuDeviceGet muDeviceGet
#define cuDeviceGetName muDeviceGetName
#define cuDeviceGetUuid_v2 muDeviceGetUuid_v2
#define cuDeviceTotalMem_v2 muDeviceTotalMem_v2
#define cuDeviceGetAttribute muDeviceGetAttribute
#define cuDeviceGetPCIBusId muDeviceGetPCIBusId
#define cuDevicePrimaryCtxRetain muDevicePrimaryCtxRetain
#define cuDevicePrimaryCtxRelease_v2 muDevicePrimaryCtxRelease_v2
#define cuCtxGetCurrent muCtxGetCurrent
#define cuCtxSetCurrent muCtxSetCurrent
#define cuMemGetInfo_v2 muMemGetInfo_v2
#define cuMemAlloc_v2 muMemAlloc_v2
#define cuMemFree_v2 muMemFree_v2
#define cuMemHostAlloc muMemHostAlloc
#define cuMemFreeHost muMemFreeHost
#define cuMemcpyHtoDAsync_v2 muMemcpyHtoDAsync_v2
#define cuMemcpyDtoHAsync_v2 muMemcpyDtoHAsync_v2
#define cuMemcpyDtoDAsync_v2 muMemcpyDtoDAsync_v2
#define cuMemcpyPeerAsync muMemcpyPeerAsync
#define cuMemsetD8Async muMemsetD8Async
#define cuStreamCreate muStreamCreate
#define cuStreamDestroy_v2 muStreamDestroy_v2
#define cuStreamSynchronize muStreamSynchronize
#define cuStreamQuery muStreamQuery
#define cuStreamWaitEvent muStreamWaitEvent
#define cuEventCreate muEventCreate
#define cuEventDestroy_v2 muEventDestroy_v2
#define cuEventRecord muEventRecord
#define cuEventQuery muEventQuery
#define cuEventSynchronize muEventSynchronize
#define cuEventElapsedTime muEventElapsedTime
#define cuModuleLoadData muModuleLoadData
#define cuModuleUnload muModuleUnload
#define cuModuleGetFunction muModuleGetFunction
#define cuFuncSetAttribute muFuncSetAttribute
#define cuFuncGetAttribute muFuncGetAttribute
#define cuLaunchKernel muLaunchKernel
#define cuStreamBeginCapture_v2 muStreamBeginCapture
#define cuStreamEndCapture muStreamEndCapture
#define cuGraphInstantiateWithFlags muGraphInstantiateWithFlags
#define cuGraphDestroy muGraphDestroy
#define cuGraphExecDestroy muGraphExecDestroy
#define cuGraphLaunch muGraphLaunch
#define cuGetErrorName muGetErrorName
#define cuGetErrorString muGetErrorString

#define nvrtcVersion mtrtcVersion
#define nvrtcGetErrorString mtrtcGetErrorString
#define nvrtcCreateProgram mtrtcCreateProgram
#define nvrtcDestroyProgram mtrtcDestroyProgram
#define nvrtcCompileProgram mtrtcCompileProgram
#define nvrtcGetProgramLogSize mtrtcGetProgramLogSize
#define nvrtcGetProgramLog mtrtcGetProgramLog
#define nvrtcGetCUBINSize mtrtcGetFatBinSize
#define nvrtcGetCUBIN mtrtcGetFatBin

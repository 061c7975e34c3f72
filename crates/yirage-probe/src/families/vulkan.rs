//! Vulkan: the loader, which asks every installed driver. Among them may be one that computes on the processor.
//!
//! Records are those of the registry's headers for 64-bit systems. An instance is made for each question, and stays until the
//! next one has been made: with the last instance the loader unloads its drivers, and what computes afterwards would have to
//! load them again (Mesa's take 14 ms).

use crate::error::ProbeError;
use crate::family::{Family, LibraryLocation};
use crate::library::{DriverLibrary, text};
use crate::library_report::LibraryReport;
use crate::limits::MOST_DEVICES;
use crate::search::LibrarySearch;
use crate::visible::VisibilityVariables;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::path::PathBuf;
use std::ptr::{null, null_mut};
use std::sync::{Mutex, PoisonError};
use yirage_hal::DeviceInfo;

/// Vulkan.
pub static VULKAN: Family = Family {
    name: "vulkan",
    title: "Vulkan",
    system: "linux",
    location: LibraryLocation::Files(LibrarySearch {
        libraries: &["libvulkan.so.1", "libvulkan.so"],
        roots: &["VULKAN_SDK"],
        folders: &[],
        own_folders_only: false,
        foreign: &[],
    }),
    visible: VisibilityVariables { by_runtime: &[], by_us: Some("GGML_VK_VISIBLE_DEVICES"), of_containers: &[] },
    driver_file: None,
    install: "install the Vulkan loader (libvulkan1) and a driver for your device",
    ask,
};

/// The oldest version that will do: 1.1, as the loader counts.
const OLDEST: u32 = 1 << 22 | 1 << 12;
/// The kind of device that is a processor.
const SOFTWARE: u32 = 4;
/// A part of memory that lies on the device.
const ON_DEVICE: u32 = 1;
/// The loader has found no driver.
const NO_DRIVER: i32 = -9;
/// There may be more than were asked for.
const INCOMPLETE: i32 = 5;

/// `VkInstanceCreateInfo` with nothing wanted.
#[repr(C)]
struct InstanceInfo {
    kind: u32,
    next: *const c_void,
    flags: u32,
    application: *const c_void,
    layers: u32,
    layer_names: *const c_void,
    extensions: u32,
    extension_names: *const c_void,
}

/// `VkPhysicalDeviceProperties`, of which only the beginning is read; the rest is larger than in any version.
#[repr(C, align(8))]
struct Properties {
    api_version: u32,
    driver_version: u32,
    vendor: u32,
    device: u32,
    kind: u32,
    name: [u8; 256],
    rest: [u8; 1024],
}

/// `VkPhysicalDeviceMemoryProperties`.
#[repr(C)]
struct VkMemoryProperties {
    types: u32,
    type_list: [[u32; 2]; 32],
    heaps: u32,
    heap_list: [Heap; 16],
}

/// `VkMemoryHeap`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Heap {
    bytes: u64,
    flags: u32,
}

type VkHandle = *mut c_void;
type Create = unsafe extern "C" fn(*const InstanceInfo, *const c_void, *mut VkHandle) -> i32;
type Destroy = unsafe extern "C" fn(VkHandle, *const c_void);
type Enumerate = unsafe extern "C" fn(VkHandle, *mut u32, *mut VkHandle) -> i32;
type Describe<T> = unsafe extern "C" fn(VkHandle, *mut T);

/// The instance of the last question to each loader, by its path.
static LATEST: Mutex<BTreeMap<PathBuf, VkInstance>> = Mutex::new(BTreeMap::new());

/// An instance that was made, with the function that ends it, whose library stays loaded.
struct VkInstance {
    handle: VkHandle,
    destroy: Destroy,
}

// SAFETY: an instance belongs to no thread (Vulkan 1.4, section 3.6: only what is destroyed must not be in use), and nobody
// else has the handle, which nothing but `devices` and `drop` uses.
unsafe impl Send for VkInstance {}

impl VkInstance {
    fn new(library: &DriverLibrary) -> Result<VkInstance, ProbeError> {
        // SAFETY: the headers' types.
        let (create, destroy) = unsafe {
            (library.function::<Create>("vkCreateInstance")?, library.function::<Destroy>("vkDestroyInstance")?)
        };
        let info = InstanceInfo {
            kind: 1,
            next: null(),
            flags: 0,
            application: null(),
            layers: 0,
            layer_names: null(),
            extensions: 0,
            extension_names: null(),
        };
        let mut handle = null_mut();
        // SAFETY: the record is whole and names nothing; the handle is ours.
        let code = unsafe { create(&info, null(), &mut handle) };
        if code == NO_DRIVER {
            return Err(ProbeError::NoDevice { path: library.path(), hidden: None });
        }
        library.checked("vkCreateInstance", code)?;
        Ok(VkInstance { handle, destroy })
    }

    /// Keeps it in the place of the loader's one before, which ends.
    fn keep(self, loader: PathBuf) {
        let before = LATEST.lock().unwrap_or_else(PoisonError::into_inner).insert(loader, self);
        // Ended when the lock is free: a driver may take its time.
        drop(before);
    }
}

impl Drop for VkInstance {
    fn drop(&mut self) {
        // SAFETY: `new` made it by the same library, and nobody else has it.
        unsafe { (self.destroy)(self.handle, null()) };
    }
}

fn ask(backend: &'static str, library: &DriverLibrary) -> Result<LibraryReport, ProbeError> {
    let version = library.number("vkEnumerateInstanceVersion")?.cast_unsigned();
    if version < OLDEST {
        return Err(ProbeError::TooOld { path: library.path(), found: written(version), needed: written(OLDEST) });
    }
    let instance = VkInstance::new(library)?;
    let devices = devices(backend, library, &instance);
    instance.keep(library.path());
    Ok(LibraryReport { driver_version: None, sdk_version: Some(written(version)), devices: devices? })
}

fn devices(
    backend: &'static str,
    library: &DriverLibrary,
    instance: &VkInstance,
) -> Result<Vec<DeviceInfo>, ProbeError> {
    let call = "vkEnumeratePhysicalDevices";
    let mut count = MOST_DEVICES;
    let mut handles = vec![null_mut(); MOST_DEVICES as usize];
    // SAFETY: the header's type; as many handles are ours as the call is told.
    let code = unsafe { library.function::<Enumerate>(call)?(instance.handle, &mut count, handles.as_mut_ptr()) };
    library.checked(call, if code == INCOMPLETE { 0 } else { code })?;
    if count == 0 {
        return Err(ProbeError::NoDevice { path: library.path(), hidden: None });
    }
    handles.truncate(count as usize);
    (0..).zip(handles).map(|(ordinal, device)| describe(backend, library, ordinal, device)).collect()
}

fn describe(
    backend: &'static str,
    library: &DriverLibrary,
    ordinal: u32,
    device: VkHandle,
) -> Result<DeviceInfo, ProbeError> {
    let mut of = Properties {
        api_version: 0,
        driver_version: 0,
        vendor: 0,
        device: 0,
        kind: 0,
        name: [0; 256],
        rest: [0; 1024],
    };
    let mut memory = VkMemoryProperties {
        types: 0,
        type_list: [[0; 2]; 32],
        heaps: 0,
        heap_list: [Heap { bytes: 0, flags: 0 }; 16],
    };
    // SAFETY: the headers' types; the device is one that the loader gave, and the records are ours and large enough.
    unsafe {
        library.function::<Describe<Properties>>("vkGetPhysicalDeviceProperties")?(device, &mut of);
        library.function::<Describe<VkMemoryProperties>>("vkGetPhysicalDeviceMemoryProperties")?(device, &mut memory);
    }
    let heaps = memory.heap_list.iter().take(memory.heaps as usize).filter(|heap| heap.flags & ON_DEVICE != 0);
    let bytes = heaps.map(|heap| heap.bytes).fold(0, u64::saturating_add);
    let arch = format!("vulkan {}", written(of.api_version));
    Ok(DeviceInfo {
        total_memory_bytes: Some(bytes),
        software: of.kind == SOFTWARE,
        facts: vec![
            ("vendor_and_device", format!("{:#06x} {:#06x}", of.vendor, of.device)),
            ("driver_number", of.driver_version.to_string()),
        ],
        ..DeviceInfo::new(backend, ordinal, text(&of.name), arch)
    })
}

/// A version in the loader's form: ten bits, ten bits, twelve bits.
fn written(version: u32) -> String {
    format!("{}.{}.{}", version >> 22 & 0x7f, version >> 12 & 0x3ff, version & 0xfff)
}

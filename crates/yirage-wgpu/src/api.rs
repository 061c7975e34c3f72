//! The interfaces that graphics processors are reached by.

use yirage_hal::Unavailable;
use yirage_probe::{ProbeEnvironment, VisibilityVariables, families};

/// An interface to graphics processors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GraphicsApi {
    /// Vulkan, on Linux and Windows.
    Vulkan,
    /// Metal, on Apple's systems.
    Metal,
    /// Direct3D 12, on Windows.
    Direct3D12,
}

impl GraphicsApi {
    /// The backend's name.
    pub fn name(self) -> &'static str {
        match self {
            GraphicsApi::Vulkan => "vulkan",
            GraphicsApi::Metal => "mps",
            GraphicsApi::Direct3D12 => "dx12",
        }
    }

    /// What it is called, for people.
    pub(crate) fn title(self) -> &'static str {
        match self {
            GraphicsApi::Vulkan => "Vulkan",
            GraphicsApi::Metal => "Metal",
            GraphicsApi::Direct3D12 => "Direct3D 12",
        }
    }

    /// What wgpu calls it.
    pub(crate) fn backends(self) -> wgpu::Backends {
        match self {
            GraphicsApi::Vulkan => wgpu::Backends::VULKAN,
            GraphicsApi::Metal => wgpu::Backends::METAL,
            GraphicsApi::Direct3D12 => wgpu::Backends::DX12,
        }
    }

    /// The systems that it is used on here, as Rust names them.
    fn systems(self) -> &'static [&'static str] {
        match self {
            GraphicsApi::Vulkan => &["linux", "windows"],
            GraphicsApi::Metal => &["macos"],
            GraphicsApi::Direct3D12 => &["windows"],
        }
    }

    /// Whether this operating system has it.
    pub fn is_of_this_system(self) -> bool {
        self.systems().contains(&std::env::consts::OS)
    }

    /// What has to be installed for it.
    pub(crate) fn remedy(self) -> &'static str {
        match self {
            GraphicsApi::Vulkan => "install the Vulkan loader (libvulkan1) and a driver for your device",
            GraphicsApi::Metal => "it comes with the system, for Apple's own processors and some of AMD and Intel",
            GraphicsApi::Direct3D12 => "install a driver of your device's maker",
        }
    }

    /// Looks whether its library is here and knows devices, before anything of it is started.
    ///
    /// # Errors
    /// Why there is none, and what to do.
    pub(crate) fn look(self, surroundings: &ProbeEnvironment) -> Result<(), Unavailable> {
        let system = std::env::consts::OS;
        if !self.is_of_this_system() {
            return Err(Unavailable {
                backend: self.name(),
                why: format!("{} is used on {}; this is {system}", self.title(), self.systems().join(" and ")),
                remedy: "choose another backend".into(),
                present: false,
            });
        }
        match self {
            // The loader may be missing, or a driver hang or crash: asked on a thread of its own, with a deadline.
            GraphicsApi::Vulkan if system == "linux" => families::VULKAN.look(surroundings).map(drop),
            GraphicsApi::Metal => families::METAL.look(surroundings).map(drop),
            GraphicsApi::Vulkan | GraphicsApi::Direct3D12 => Ok(()),
        }
    }

    /// Variables that hide its devices.
    pub(crate) fn visible(self) -> &'static VisibilityVariables {
        match self {
            GraphicsApi::Vulkan => &families::VULKAN.visible,
            GraphicsApi::Metal => &families::METAL.visible,
            GraphicsApi::Direct3D12 => &VisibilityVariables::NONE,
        }
    }
}

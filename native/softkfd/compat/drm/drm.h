// linux/kfd_ioctl.h asks for the kernel's name of this header; Debian ships it with libdrm.
#include <drm.h>

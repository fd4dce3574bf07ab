/*
 * Preloaded into fsx 0.3.2, which never unmaps what it maps to read: after some thousand operations most of its time is the
 * kernel going through old mappings. Here a shared mapping of a file ends when the program makes the next one.
 */
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *kept;
static size_t kept_length;

static void *map(void *address, size_t length, int protection, int flags, int fd, long offset)
{
	void *made = (void *)syscall(SYS_mmap, address, length, protection, flags, fd, offset);

	if (made == MAP_FAILED || fd < 0 || !(flags & MAP_SHARED))
		return made;
	if (kept != NULL)
		syscall(SYS_munmap, kept, kept_length);
	kept = made;
	kept_length = length;
	return made;
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	return map(address, length, protection, flags, fd, offset);
}

void *mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	return map(address, length, protection, flags, fd, offset);
}

int munmap(void *address, size_t length)
{
	if (address == kept)
		kept = NULL;
	return (int)syscall(SYS_munmap, address, length);
}

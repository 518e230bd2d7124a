/* relay starts the program that its arguments name and copies bytes between its own
 * streams and that program's: the floor for a process that stands between two others.
 * cc -O2 -o relay relay.c */
#include <stdlib.h>
#include <unistd.h>

static void copy(int from, int to) {
	static char buf[1 << 16];
	ssize_t n;
	while ((n = read(from, buf, sizeof buf)) > 0)
		for (ssize_t at = 0; at < n;) {
			ssize_t w = write(to, buf + at, n - at);
			if (w < 0)
				exit(1);
			at += w;
		}
}

int main(int argc, char **argv) {
	int in[2], out[2];
	if (argc < 2 || pipe(in) < 0 || pipe(out) < 0)
		return 2;
	if (fork() == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[0]), close(in[1]), close(out[0]), close(out[1]);
		execv(argv[1], argv + 1);
		_exit(127);
	}
	close(in[0]), close(out[1]);
	if (fork() == 0) { /* one process for each direction: neither waits for the other */
		close(out[0]), close(1);
		copy(0, in[1]);
		_exit(0);
	}
	close(in[1]), close(0);
	copy(out[0], 1);
	return 0;
}

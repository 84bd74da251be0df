package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// commandTimeout is how long one call of git may take.
	commandTimeout = 30 * time.Second
	// killDelay is how long git may take to end after it was told to, and until its output is closed: a filter may keep it open.
	killDelay = 2 * time.Second
	// outputLimit is the most output of git that is kept in memory.
	outputLimit = 16 << 20
	// errorLimit is the most that is kept of what git writes to its standard error.
	errorLimit = 8 << 10
	// argumentLimit is the most bytes of paths in the arguments of one call. The system's own limit is above 100,000.
	argumentLimit = 64 << 10
)

// settings are those of every call. They keep the repository's configuration from running programs that a commit does not need.
var settings = []string{
	"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false",
	"-c", "submodule.recurse=false", "-c", "i18n.commitEncoding=UTF-8", "-c", "i18n.logOutputEncoding=UTF-8", "--no-pager",
	"--literal-pathspecs",
}

// errOutput is the error of a call whose output exceeds outputLimit.
var errOutput = errors.New("git wrote too much")

// failure is the error of a call of git that ended with another code than 0.
type failure struct {
	command string
	code    int
	stderr  string
}

func (f *failure) Error() string {
	line, _, _ := strings.Cut(strings.TrimSpace(f.stderr), "\n")
	if line == "" {
		return fmt.Sprintf("git %s failed with code %d", f.command, f.code)
	}
	return fmt.Sprintf("git %s: %s", f.command, line)
}

// worktree calls git in a directory.
type worktree struct {
	dir string
	env []string // added to the environment
}

// with returns a worktree whose calls have more environment variables.
func (w worktree) with(env ...string) worktree {
	w.env = append(append([]string(nil), w.env...), env...)
	return w
}

// git calls git with arguments and an input, and returns its standard output.
func (w worktree) git(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	out := &limited{limit: outputLimit}
	if err := w.gitTo(ctx, out, stdin, args...); err != nil {
		return nil, err
	}
	if out.dropped {
		return nil, fmt.Errorf("git %s: %w", args[0], errOutput)
	}
	return out.Bytes(), nil
}

// gitTo calls git with arguments and an input, and copies its standard output to out.
func (w worktree) gitTo(ctx context.Context, out io.Writer, stdin []byte, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	c := exec.CommandContext(ctx, "git", append(append([]string(nil), settings...), args...)...)
	c.Cancel = func() error { // told to end, git removes its locks
		if c.Process.Signal(syscall.SIGTERM) == nil {
			return nil
		}
		return c.Process.Kill() // Windows has no such signal
	}
	c.Dir, c.Env, c.WaitDelay = w.dir, append(environment(os.Environ()), w.env...), killDelay
	stderr := &limited{limit: errorLimit}
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(stdin), out, stderr
	err := c.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("git %s: %w", args[0], ctx.Err())
	case errors.As(err, &exit):
		return &failure{command: args[0], code: exit.ExitCode(), stderr: stderr.String()}
	case err != nil:
		return fmt.Errorf("git %s: %w", args[0], err)
	}
	return nil
}

// line returns git's standard output without the newline at its end.
func (w worktree) line(ctx context.Context, args ...string) (string, error) {
	out, err := w.git(ctx, nil, args...)
	return strings.TrimSuffix(string(out), "\n"), err
}

// environment returns the variables of a call: those of the process except git's own, which would name another repository or
// another index, and those that keep git from asking a person and from translating its messages.
func environment(process []string) []string {
	env := slices.DeleteFunc(slices.Clone(process), func(v string) bool { return strings.HasPrefix(strings.ToUpper(v), "GIT_") })
	return append(env, "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_EDITOR=false", "LC_ALL=C", "LANGUAGE=")
}

// locked reports whether git failed because another process holds a lock file.
func locked(err error) bool {
	var f *failure
	return errors.As(err, &f) && (strings.Contains(f.stderr, ".lock") || strings.Contains(f.stderr, "cannot lock"))
}

// limited keeps the beginning of what is written to it.
type limited struct {
	bytes.Buffer
	limit   int
	dropped bool
}

func (l *limited) Write(p []byte) (int, error) {
	room := max(0, l.limit-l.Len())
	if len(p) > room {
		l.dropped = true
	}
	l.Buffer.Write(p[:min(len(p), room)])
	return len(p), nil
}

// ReadFrom hides that of bytes.Buffer, which has no limit.
func (l *limited) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{l}, r)
}

// queues let the commits of this process into a repository one after the other. Without them they would conflict, and each
// would be made several times. Other processes are not affected. There is one queue for each repository that was ever used.
var queues = struct {
	sync.Mutex
	of map[string]chan struct{}
}{of: map[string]chan struct{}{}}

// enter waits for a repository. leave lets the next one in.
func enter(ctx context.Context, repository string) (leave func(), err error) {
	queues.Lock()
	q := queues.of[repository]
	if q == nil {
		q = make(chan struct{}, 1)
		queues.of[repository] = q
	}
	queues.Unlock()
	select {
	case q <- struct{}{}:
		return func() { <-q }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

package git

import (
	"context"
	"strings"
	"time"
)

const (
	// refreshes is how often the shared index is tried while another process holds its lock, and refreshDelay how long a try
	// waits.
	refreshes    = 20
	refreshDelay = 100 * time.Millisecond
	// othersLimit is how many changed paths that are not part of a commit are named.
	othersLimit = 15
)

// refresh sets the entries of files in the shared index to what the branch has. Otherwise git would show the commit's changes
// as staged for the opposite.
func (w worktree) refresh(ctx context.Context, files []string) error {
	for n := 0; ; n++ {
		_, err := w.git(ctx, joined(files), "reset", "--quiet", "--pathspec-from-file=-", "--pathspec-file-nul", "HEAD")
		if err == nil || !locked(err) || n == refreshes {
			return err
		}
		if err := pause(ctx, refreshDelay); err != nil {
			return err
		}
	}
}

// others returns changed paths that are not held, for a warning: none if git fails.
func (j job) others(ctx context.Context) (paths []string) {
	out, err := j.git(ctx, nil, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal")
	if err != nil {
		return nil
	}
	for _, p := range statusPaths(out) {
		if !j.held.covers(p) {
			paths = append(paths, p)
		}
	}
	return bounded(paths, othersLimit)
}

// statusPaths returns the paths of a status without renames.
func statusPaths(out []byte) (paths []string) {
	for _, entry := range split(out) {
		if len(entry) > 3 { // two letters and a space
			paths = append(paths, entry[3:])
		}
	}
	return paths
}

// summary says what was committed, in the words of git commit.
func (j job) summary(ctx context.Context, commit string) string {
	branch, err := j.line(ctx, "symbolic-ref", "--quiet", "--short", "HEAD")
	if err != nil {
		branch = "detached HEAD"
	}
	text := subject(j.req.Message)
	if runes := []rune(text); len(runes) > 200 {
		text = string(runes[:200])
	}
	return strings.TrimSpace("[" + branch + " " + commit[:min(7, len(commit))] + "] " + text)
}

package git

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/internal/crewbody"
)

// Dirty returns a receipt whose Dirty are the paths, among those of req, with changes that are in no commit: staged, not staged,
// or files that git does not know and does not ignore. They are at most 1,000 paths and 128 KiB. The receipt has failed if git
// has, for example because req.Cwd is in no repository. Dirty blocks for at most a minute and changes nothing.
func Dirty(ctx context.Context, req crewbody.Dirty, actionID string) crewbody.Receipt {
	receipt := crewbody.Receipt{ActionID: actionID}
	paths, err := dirty(ctx, req)
	if err != nil {
		receipt.Failed, receipt.Error = true, plain(err)
		return receipt
	}
	receipt.Dirty = bounded(paths, filesLimit)
	return receipt
}

func dirty(ctx context.Context, req crewbody.Dirty) (paths []string, err error) {
	top, err := worktree{dir: req.Cwd}.line(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	w, h := worktree{dir: top}, held(req.Paths)
	if err := h.check(top); err != nil {
		return nil, err
	}
	specs, above := h.specs()
	for _, specs := range batches(append(specs, above...)) {
		out, err := w.git(ctx, nil, append([]string{
			"status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--",
		}, specs...)...)
		if err != nil {
			return nil, err
		}
		for _, p := range statusPaths(out) {
			if h.covers(p) {
				paths = append(paths, p)
			}
		}
	}
	return paths, nil
}

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

// Place returns the root of the work tree in which a directory is, and the path of the directory below it, with slashes and empty for
// the root itself. Both are empty outside work trees.
func Place(ctx context.Context, dir string) (root, below string) {
	top, err := worktree{dir: dir}.line(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return "", ""
	}
	rel, err := filepath.Rel(top, dir)
	switch {
	case err != nil || !filepath.IsLocal(rel):
		return "", ""
	case rel == ".":
		return filepath.ToSlash(top), ""
	}
	return filepath.ToSlash(top), filepath.ToSlash(rel)
}

// filesLimit and bytesLimit bound the paths of a receipt; further ones are left out.
const (
	filesLimit = 1000
	bytesLimit = 128 << 10
)

// bounded returns the first paths for a receipt, at most limit and bytesLimit. Bytes that are no UTF-8 are replaced, because JSON
// has none.
func bounded(paths []string, limit int) (some []string) {
	size := 0
	for _, p := range paths {
		if size += len(p); len(some) == limit || size > bytesLimit {
			break
		}
		some = append(some, strings.ToValidUTF8(p, "\uFFFD"))
	}
	return some
}

// plain is the text of an error for a receipt.
func plain(err error) string { return strings.ToValidUTF8(err.Error(), "\uFFFD") }

package git

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/turntable-streams/turntable/internal/clock"
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
		paths = append(paths, slices.DeleteFunc(statusPaths(out), func(p string) bool { return !h.covers(p) })...)
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
		if !clock.Sleep(ctx, clock.System(), refreshDelay) {
			return ctx.Err()
		}
	}
}

// others returns changed paths that are not held, for a warning: none if git fails.
func (j job) others(ctx context.Context) []string {
	out, err := j.git(ctx, nil, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal")
	if err != nil {
		return nil
	}
	return bounded(slices.DeleteFunc(statusPaths(out), j.held.covers), othersLimit)
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

// everything ends a path that stands for everything below a directory.
const everything = "/*"

// held are the paths that an agent has locked.
type held []string

// covers reports whether a file is one that the agent may commit.
func (h held) covers(file string) bool {
	return slices.ContainsFunc(h, func(p string) bool { return coveredBy(p, file) })
}

// coveredBy compares paths in Unicode's NFC, in which they are locked. The name of the file itself can have another form: systems
// such as Linux keep names as they are written.
func coveredBy(path, file string) bool {
	path, file = norm.NFC.String(path), norm.NFC.String(file)
	if dir, ok := strings.CutSuffix(path, everything); ok {
		return strings.HasPrefix(file, dir+"/")
	}
	return path == file
}

// specs returns the paths as literal pathspecs of git. That of a directory ends in a slash, so that it is no file. The names of
// files can have another form of Unicode than the paths, so a path with other characters than those of ASCII is no pathspec:
// above has the directory above the first of them, in which the covered files are to be looked for.
func (h held) specs() (specs, above []string) {
	for _, p := range h {
		other := strings.IndexFunc(p, func(r rune) bool { return r >= utf8.RuneSelf })
		dir, ok := strings.CutSuffix(p, everything)
		switch {
		case other >= 0:
			above = append(above, cmp.Or(p[:strings.LastIndexByte(p[:other], '/')+1], "."))
		case ok:
			specs = append(specs, dir+"/")
		default:
			specs = append(specs, p)
		}
	}
	slices.Sort(above)
	return specs, slices.Compact(above)
}

// without returns the paths that cover none of the files.
func (h held) without(files []string) []string {
	return slices.DeleteFunc(slices.Clone(h), func(p string) bool {
		return slices.ContainsFunc(files, func(f string) bool { return coveredBy(p, f) })
	})
}

// check returns an error if a path leaves the work tree, by its name or by a symbolic link. It is checked before git is called
// because git tells nothing about some of these paths.
func (h held) check(top string) error {
	for _, p := range h {
		parent := filepath.Dir(filepath.FromSlash(p)) // of dir/*, the directory itself
		if !filepath.IsLocal(filepath.FromSlash(p)) || strings.ContainsRune(p, 0) {
			return fmt.Errorf("%q is no path in the repository", p)
		}
		for ; parent != "."; parent = filepath.Dir(parent) {
			// What cannot be read, or does not exist, is git's to judge.
			if info, err := os.Lstat(filepath.Join(top, parent)); err == nil && info.Mode()&fs.ModeSymlink != 0 {
				return fmt.Errorf("%q is behind the symbolic link %q", p, filepath.ToSlash(parent))
			}
		}
	}
	return nil
}

// batches divides paths so that each part fits into the arguments of a call.
func batches(paths []string) (parts [][]string) {
	size := argumentLimit
	for _, p := range paths {
		if size += len(p) + 1; size > argumentLimit {
			parts, size = append(parts, nil), len(p)+1
		}
		last := len(parts) - 1
		parts[last] = append(parts[last], p)
	}
	return parts
}

// split returns the parts of git's output with -z.
func split(out []byte) []string {
	text := strings.TrimSuffix(string(out), "\x00")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\x00")
}

// joined is the input of git for -z.
func joined(paths []string) []byte {
	return []byte(strings.Join(paths, "\x00") + "\x00")
}

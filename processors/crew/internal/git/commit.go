package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

const (
	// commitTimeout is how long a commit may take, with waiting for others.
	commitTimeout = 2 * time.Minute
	// attempts is how often a commit is tried while other commits come first, or another process holds the lock of the branch.
	attempts = 20
	// backoff is how long the next attempt waits, times the number of attempts.
	backoff = 20 * time.Millisecond
)

var (
	errNothing = errors.New("nothing to commit")
	errLate    = errors.New("the host was asked too long ago, so the files may have other holders now; try again")
)

// Commit commits what has changed in the paths of an action, on the branch that is checked out in req.Cwd. Paths are relative to
// the top of the work tree; one that has not changed, or does not exist, is left out and is in Missing of the receipt. Commit
// blocks for at most 2 minutes, and makes no commit from req.UntilMS on. It may be called by several goroutines and processes at
// once, and again for the same action, which returns the commit that the action has made, also if that contains paths that are in
// req.Released now.
//
// A failed receipt says that there is no commit. Error of one that has not failed is a warning: the commit was made, but git
// shows its files as changed until they are staged. Files are at most 1,000 paths and 128 KiB.
func Commit(ctx context.Context, req crewbody.Commit, actionID string) crewbody.Receipt {
	return committer{}.commit(ctx, req, actionID)
}

// committer makes a commit. step, if it is set, is called before each change of the repository: tests end the process there.
type committer struct {
	step func(name string)
}

func (c committer) before(name string) {
	if c.step != nil {
		c.step(name)
	}
}

// job is a commit to make.
type job struct {
	worktree
	req     crewbody.Commit
	held    held
	trailer string
}

// made is a commit that was made.
type made struct {
	id    string
	files []string
}

func (c committer) commit(ctx context.Context, req crewbody.Commit, actionID string) crewbody.Receipt {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	receipt := crewbody.Receipt{ActionID: actionID}
	done, j, err := c.run(ctx, req, actionID)
	if err != nil {
		receipt.Failed, receipt.Error = true, plain(err)
		return receipt
	}
	c.before("refresh")
	if err := j.refresh(ctx, done.files); err != nil {
		receipt.Error = "the index was not updated: " + plain(err)
	}
	receipt.Commit, receipt.Files = done.id, bounded(done.files, filesLimit)
	receipt.Missing = bounded(j.held.without(done.files), filesLimit)
	receipt.Others = j.others(ctx)
	receipt.Summary = j.summary(ctx, done.id)
	return receipt
}

func (c committer) run(ctx context.Context, req crewbody.Commit, actionID string) (done made, j job, err error) {
	common, err := worktree{dir: req.Cwd}.line(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return done, j, err
	}
	leave, err := enter(ctx, common)
	if err != nil {
		return done, j, err
	}
	defer leave()
	return c.runUnqueued(ctx, req, actionID)
}

func (c committer) runUnqueued(ctx context.Context, req crewbody.Commit, actionID string) (done made, j job, err error) {
	top, err := worktree{dir: req.Cwd}.line(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return done, j, err
	}
	j = job{worktree: worktree{dir: top}, req: req, held: req.Paths, trailer: trailer(actionID, req.Fence)}
	for n := range attempts {
		var again bool
		if done, again, err = c.attempt(ctx, j); !again {
			return done, j, err
		}
		if !clock.Sleep(ctx, clock.System(), backoff*time.Duration(n+1)) {
			return done, j, ctx.Err()
		}
	}
	return done, j, fmt.Errorf("the branch was not moved in %d attempts: %w", attempts, err)
}

// attempt makes the commit. again says that the branch has moved meanwhile, or that another process has locked it, so that
// another attempt makes sense.
func (c committer) attempt(ctx context.Context, j job) (done made, again bool, err error) {
	head, err := j.head(ctx)
	if err != nil {
		return done, false, err
	}
	if done, err = j.find(ctx, head); err != nil || done.id != "" {
		return done, false, err
	}
	if err := j.ready(ctx); err != nil {
		return done, false, err
	}
	tree, files, err := j.stage(ctx, head)
	if err != nil {
		return done, false, err
	}
	done.files = files
	c.before("commit-tree")
	if done.id, err = j.write(ctx, head, tree); err != nil {
		return done, false, err
	}
	c.before("update-ref")
	if j.req.UntilMS != 0 && time.Now().UnixMilli() >= j.req.UntilMS {
		return done, false, errLate
	}
	_, err = j.git(ctx, nil, "update-ref", "-m", "commit: "+subject(j.req.Message), "--end-of-options", "HEAD", done.id, head)
	if err == nil {
		return done, false, nil
	}
	if now, readErr := j.head(ctx); readErr == nil && now != head {
		return done, true, fmt.Errorf("another commit came first: %w", err)
	}
	return done, locked(err), err
}

// head returns the commit that is checked out, empty on a branch without commits.
func (j job) head(ctx context.Context) (string, error) {
	head, err := j.line(ctx, "rev-parse", "--quiet", "--verify", "HEAD^{commit}")
	var f *failure
	if errors.As(err, &f) && f.code == 1 {
		return "", nil
	}
	return head, err
}

// ready returns an error if the work tree is in a state in which a commit of some files would lose something.
func (j job) ready(ctx context.Context) error {
	if len(j.held) == 0 {
		return errNothing
	}
	if _, err := j.line(ctx, "rev-parse", "--quiet", "--verify", "MERGE_HEAD"); err == nil {
		return errors.New("a merge is in progress")
	}
	// The index of the commit would not know which files are left out of the work tree, and delete them.
	if sparse, err := j.line(ctx, "config", "--type=bool", "--get", "core.sparseCheckout"); err == nil && sparse == "true" {
		return errors.New("the work tree has a sparse checkout")
	}
	return j.held.check(j.dir)
}

// stage returns a tree with the changes of the held files on top of a commit, and the paths that differ.
func (j job) stage(ctx context.Context, head string) (tree string, files []string, err error) {
	dir, err := os.MkdirTemp("", "turntable-index-")
	if err != nil {
		return "", nil, err
	}
	defer os.RemoveAll(dir)
	own := j.with("GIT_INDEX_FILE=" + filepath.Join(dir, "index"))
	base := "--empty"
	if head != "" {
		base = head
	}
	if _, err := own.git(ctx, nil, "read-tree", base); err != nil {
		return "", nil, err
	}
	before, err := own.line(ctx, "write-tree")
	if err != nil {
		return "", nil, err
	}
	changed, err := own.candidates(ctx, j.held)
	if err != nil {
		return "", nil, err
	}
	if len(changed) == 0 {
		return "", nil, errNothing
	}
	// The files are named one by one, so that the directories among the held paths add nothing else. --replace lets a file take
	// the place of a directory; what that removes is checked below.
	if _, err := own.git(ctx, joined(changed), "update-index", "--add", "--remove", "--replace", "-z", "--stdin"); err != nil {
		return "", nil, err
	}
	if tree, err = own.line(ctx, "write-tree"); err != nil {
		return "", nil, err
	}
	out, err := own.git(ctx, nil, "diff-tree", "-r", "-z", "--name-only", "--no-renames", before, tree)
	if err != nil {
		return "", nil, err
	}
	if files = split(out); len(files) == 0 {
		return "", nil, errNothing
	}
	for _, f := range files {
		if !j.held.covers(f) {
			return "", nil, fmt.Errorf("the commit would change %q too, which is not locked", f)
		}
	}
	return tree, files, nil
}

// candidates returns the held files that differ from the index, or that it does not know.
func (w worktree) candidates(ctx context.Context, h held) (files []string, err error) {
	specs, above := h.specs()
	// The index of the commit does not know when files were changed, so git reads every file that a pathspec matches. Only the names
	// are looked for in the directories.
	named, err := w.list(ctx, h, above, "--cached", "--others")
	if err != nil {
		return nil, err
	}
	return w.list(ctx, h, append(specs, named...), "--modified", "--deleted", "--others")
}

// list returns the held files among those that git lists for pathspecs.
func (w worktree) list(ctx context.Context, h held, specs []string, which ...string) (files []string, err error) {
	for _, part := range batches(specs) {
		args := append([]string{"ls-files", "-z", "--exclude-standard"}, which...)
		out, err := w.git(ctx, nil, append(append(args, "--"), part...)...)
		if err != nil {
			return nil, err
		}
		for _, f := range split(out) {
			if h.covers(f) && !strings.HasSuffix(f, "/") { // a repository inside the work tree ends in a slash
				files = append(files, f)
			}
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// write writes the commit of a tree. No branch has it yet.
func (j job) write(ctx context.Context, head, tree string) (string, error) {
	author := j.with("GIT_AUTHOR_NAME="+name(j.req.Author), "GIT_AUTHOR_EMAIL=agent-"+name(view.ShortID(j.req.AgentID))+"@turntable.invalid")
	if _, err := author.line(ctx, "var", "GIT_COMMITTER_IDENT"); err != nil { // no one is configured
		author = author.with("GIT_COMMITTER_NAME=Turntable", "GIT_COMMITTER_EMAIL=turntable@turntable.invalid")
	}
	args := []string{"commit-tree", tree}
	if head != "" {
		args = append(args, "-p", head)
	}
	out, err := author.git(ctx, []byte(message(j.req.Message, j.trailer)), append(args, "-F", "-")...)
	return strings.TrimSpace(string(out)), err
}

// changed returns the paths that a commit changes.
func (j job) changed(ctx context.Context, commit string) ([]string, error) {
	out, err := j.git(ctx, nil, "diff-tree", "-r", "-z", "--root", "--name-only", "--no-renames", "--no-commit-id", commit)
	return split(out), err
}

// message is the message of a commit. The trailer is its last paragraph, so that no line of the text can pass for it.
func message(text, trailer string) string {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\x00", ""))
	if text == "" {
		text = "Changes"
	}
	return text + "\n\n" + trailerKey + ": " + trailer + "\n"
}

func subject(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.ToValidUTF8(strings.ReplaceAll(line, "\x00", ""), "")
}

// name removes what git does not allow in a name.
func name(text string) string {
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '<' || r == '>' {
			return -1
		}
		return r
	}, text))
	if text == "" {
		return "agent"
	}
	return text
}

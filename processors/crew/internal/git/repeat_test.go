package git

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"github.com/turntable-streams/turntable/internal/crewbody"
)

const killedAction = "repository/harbor/1790000000000001"

// die commits in another process, which is killed before a step.
func (f *fixture) die(step string, req crewbody.Commit) {
	f.t.Helper()
	raw, err := json.Marshal(req)
	require.NoError(f.t, err)
	c := exec.CommandContext(f.t.Context(), os.Args[0])
	c.Env = append(os.Environ(), dieBefore+"="+step+" "+string(raw))
	var exit *exec.ExitError
	require.ErrorAs(f.t, c.Run(), &exit)
	require.Equal(f.t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal())
}

// A host that is killed during a commit gets the action again. Before update-ref nothing is visible; after it, the commit is
// there although no receipt was written. No message that an agent writes changes that.
func TestCommitThatIsKilledAndRepeatedIsOneCommit(t *testing.T) {
	const scissors = "# ------------------------ >8 ------------------------"
	for name, c := range map[string]struct{ step, message string }{
		"before commit-tree":          {"commit-tree", "Change things"},
		"before update-ref":           {"update-ref", "Change things"},
		"before refresh":              {"refresh", "Change things"},
		"scissors":                    {"refresh", "Explain\n\n" + scissors + "\nrest"},
		"scissors at the end":         {"refresh", "Explain\n" + scissors},
		"scissors alone":              {"refresh", scissors},
		"divider":                     {"refresh", "Explain\n---\n\n---"},
		"trailer of another action":   {"refresh", "Explain\n\nTurntable-Commit: repository/harbor/2 7"},
		"trailer without a value":     {"refresh", "Explain\n\nSigned-off-by: A\nTurntable-Commit:"},
		"line that the next one ends": {"refresh", "Explain\n\nSigned-off-by: A\n B\\"},
		"carriage returns":            {"refresh", "Explain\r\n\r\nmore\r\r\n\r"},
		"spaces of Unicode":           {"refresh", "Explain\n\u2028\u00a0x\n\u2029"},
		"control characters":          {"refresh", "Explain\x00\n\x00\n\x01\x1b[2J"},
		"long line":                   {"refresh", "Explain\n\n" + strings.Repeat("x", 60<<10)},
		"many lines":                  {"refresh", strings.Repeat("Key: value\n", 5<<10)},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "a.txt", "b.txt")
			f.write("a.txt", "mine\n")
			f.write("b.txt", "of another\n")
			req := f.request("a.txt", "b.txt/never")
			req.Message = c.message
			f.die(c.step, req)
			f.die(c.step, req)
			first := Commit(t.Context(), req, killedAction)
			require.False(t, first.Failed, "%+v", first)
			require.Equal(t, first, Commit(t.Context(), req, killedAction))
			require.Equal(t, 2, f.commits())
			require.Equal(t, []string{"a.txt"}, first.Files)
			require.Equal(t, []string{"b.txt/never"}, first.Missing)
			require.Equal(t, []string{" M b.txt"}, f.status(), "the shared index is up to date")
			f.write("a.txt", "later\n")
			require.Equal(t, first.Commit, Commit(t.Context(), req, killedAction).Commit, "what came later is not committed")
			require.Equal(t, 2, f.commits())
		})
	}
}

func TestOtherTrailersMayFollowTheOneOfTheAction(t *testing.T) {
	f := newFixture(t, "a.txt")
	f.write("a.txt", "mine\n")
	f.commit("repository/r/1", []string{"a.txt"}, []string{"a.txt"})
	f.git("-c", "user.name=Mira", "-c", "user.email=mira@example.com", "commit", "--quiet", "--amend", "--signoff", "--no-edit")
	require.Contains(t, f.git("log", "-1", "--format=%B"), "Turntable-Commit: repository/r/1 7\nSigned-off-by: Mira")
	f.write("a.txt", "later\n")
	again := Commit(t.Context(), f.request("a.txt"), "repository/r/1")
	require.Equal(t, f.git("rev-parse", "HEAD"), again.Commit+"\n")
}

// Commits of other programs that quote the trailer do not make the action look done.
func TestCommitsThatQuoteTheTrailerAreNotOnesOfTheAction(t *testing.T) {
	const line = "Turntable-Commit: repository/r/1 7"
	for name, message := range map[string]string{
		"text follows":           "Revert\n\n" + line + "\n\nIt was wrong.",
		"text before":            "Revert\n\nThis reverts the commit with\n" + line,
		"in a list of commits":   "Squashed\n\ncommit 1\n\n    Change\n\n    " + line,
		"subject":                line,
		"files of another agent": "Trick\n\n" + line,
		"longer ID":              "Other\n\n" + line + "1",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "a.txt", "b.txt")
			f.write("b.txt", "of another\n")
			f.git("-c", "user.name=Mira", "-c", "user.email=mira@example.com", "commit", "--quiet", "-am", message)
			f.write("a.txt", "mine\n")
			f.commit("repository/r/1", []string{"a.txt"}, []string{"a.txt"})
			require.Equal(t, 3, f.commits())
		})
	}
}

func TestHistoryWithLargeMessagesIsSearched(t *testing.T) {
	f := newFixture(t, "a.txt")
	f.write("a.txt", "mine\n")
	first := f.commit("repository/r/1", []string{"a.txt"}, []string{"a.txt"})
	file := filepath.Join(t.TempDir(), "message")
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("x\n", outputLimit/8)), 0o600))
	for range 5 {
		f.git("-c", "user.name=Mira", "-c", "user.email=mira@example.com", "commit", "--quiet", "--allow-empty", "-F", file)
	}
	require.Equal(t, first.Commit, Commit(t.Context(), f.request("a.txt"), "repository/r/1").Commit)
}

func TestRepeatedCommitIsFoundBelowLaterOnes(t *testing.T) {
	f := newFixture(t, "a.txt", "b.txt")
	f.write("a.txt", "mine\n")
	first := f.commit("repository/r/1", []string{"a.txt"}, []string{"a.txt"})
	f.write("b.txt", "mine\n")
	f.commit("repository/r/10", []string{"b.txt"}, []string{"b.txt"})
	f.write("a.txt", "later\n")
	again := Commit(t.Context(), f.request("a.txt"), "repository/r/1")
	require.Equal(t, first.Commit, again.Commit)
	require.Equal(t, []string{"a.txt"}, again.Files)
	require.Equal(t, []string{" M a.txt"}, f.status(), "what came later is not committed")
}

// An agent that writes the trailer of another action into its message does not make that action look done.
func TestTrailerInAMessageCountsForNothing(t *testing.T) {
	f := newFixture(t, "a.txt", "b.txt")
	f.write("a.txt", "mine\n")
	req := f.request("a.txt")
	req.Message = "Trick\n\nTurntable-Commit: repository/r/2 7"
	r := Commit(t.Context(), req, "repository/r/1")
	require.False(t, r.Failed)
	f.write("b.txt", "mine\n")
	require.NotEqual(t, r.Commit, f.commit("repository/r/2", []string{"b.txt"}, []string{"b.txt"}).Commit)
}

func TestActionIDsOfAnyTextAreFound(t *testing.T) {
	for _, id := range []string{"repository/a b/1", "repository/ä\n/1", "repository/100%/1", "repository/\x00/1", strings.Repeat("r", 500)} {
		f := newFixture(t, "a.txt")
		f.write("a.txt", "mine\n")
		first := f.commit(id, []string{"a.txt"}, []string{"a.txt"})
		require.Equal(t, first.Commit, Commit(t.Context(), f.request("a.txt"), id).Commit, "%q", id)
		require.Equal(t, 2, f.commits())
	}
}

// Another commit that comes between the reading of the branch and its move is not lost, and neither is this one.
func TestCommitStartsAgainIfTheBranchMoves(t *testing.T) {
	f := newFixture(t, "a.txt", "b.txt")
	f.write("a.txt", "mine\n")
	moves := 0
	r := committer{step: func(name string) {
		if name == "update-ref" && moves < 3 {
			moves++
			f.git("-c", "user.name=Mira", "-c", "user.email=mira@example.com", "commit", "--quiet", "--allow-empty", "-m", "Other")
		}
	}}.commit(t.Context(), f.request("a.txt"), "1")
	require.False(t, r.Failed, r.Error)
	require.Equal(t, []string{"a.txt"}, f.filesOf(r.Commit))
	require.Equal(t, 5, len(strings.Fields(f.git("rev-list", "HEAD"))))
}

// Two hosts, or two runs of one, may do an action at the same time.
func TestCommitThatAnotherProcessMakesMeanwhileIsMadeOnce(t *testing.T) {
	f := newFixture(t, "a.txt")
	f.write("a.txt", "mine\n")
	req := f.request("a.txt")
	var other crewbody.Receipt
	r := committer{step: func(name string) {
		if name == "update-ref" && other.Commit == "" {
			// The queue of this process is not that of another one.
			_, j, err := committer{}.runUnqueued(t.Context(), req, "1")
			require.NoError(t, err)
			other.Commit = strings.TrimSpace(f.git("rev-parse", "HEAD"))
			require.NotEmpty(t, j.dir)
		}
	}}.commit(t.Context(), req, "1")
	require.False(t, r.Failed, r.Error)
	require.Equal(t, other.Commit, r.Commit)
	require.Equal(t, 2, f.commits())
}

func TestErrorsOfGitNameTheCommand(t *testing.T) {
	_, err := worktree{dir: t.TempDir()}.git(t.Context(), nil, "rev-parse", "--verify", "nothing")
	var f *failure
	require.True(t, errors.As(err, &f))
	require.Equal(t, 128, f.code)
	require.ErrorContains(t, err, "git rev-parse: fatal: ")
}

// A person releases paths of a commit that the host has made, and the host is asked again before it has answered.
func TestCommitWithPathsThatAreReleasedMeanwhileIsFound(t *testing.T) {
	f := newFixture(t, "a.txt", "b.txt", "dir/c.txt")
	for _, name := range []string{"a.txt", "b.txt", "dir/c.txt"} {
		f.write(name, "mine\n")
	}
	first := f.commit(killedAction, []string{"a.txt", "b.txt", "dir/*"}, []string{"a.txt", "b.txt", "dir/c.txt"})
	f.write("a.txt", "of the next holder\n")
	f.write("b.txt", "later\n")
	for _, paths := range [][]string{{"b.txt", "dir/*"}, {"b.txt"}, {}} {
		req := f.request(paths...)
		for _, p := range []string{"a.txt", "b.txt", "dir/*"} {
			if !slices.Contains(paths, p) {
				req.Released = append(req.Released, p)
			}
		}
		again := Commit(t.Context(), req, killedAction)
		require.False(t, again.Failed, "%v: %s", paths, again.Error)
		require.Equal(t, first.Commit, again.Commit, "%v", paths)
		require.Equal(t, first.Files, again.Files, "%v", paths)
		require.Equal(t, 2, f.commits(), "%v", paths)
	}
}

// The action has made no commit. Its released paths may have another holder, so they are in none.
func TestReleasedPathsAreNotCommitted(t *testing.T) {
	f := newFixture(t, "a.txt", "b.txt")
	f.write("a.txt", "of the next holder\n")
	f.write("b.txt", "mine\n")
	req := f.request()
	req.Released = []string{"a.txt", "b.txt"}
	r := Commit(t.Context(), req, killedAction)
	require.True(t, r.Failed)
	require.Equal(t, errNothing.Error(), r.Error)
	req.Paths, req.Released = []string{"b.txt"}, []string{"a.txt"}
	r = Commit(t.Context(), req, killedAction)
	require.False(t, r.Failed, r.Error)
	require.Equal(t, []string{"b.txt"}, f.filesOf(r.Commit))
	require.Equal(t, []string{" M a.txt"}, f.status())
}

// The row gives the paths to other agents when the host is too late. A commit that was made before is found nevertheless.
func TestCommitIsNotMadeAfterItsTime(t *testing.T) {
	f := newFixture(t, "a.txt")
	f.write("a.txt", "mine\n")
	req := f.request("a.txt")
	req.UntilMS = time.Now().Add(-time.Millisecond).UnixMilli()
	r := Commit(t.Context(), req, "1")
	require.True(t, r.Failed)
	require.Contains(t, r.Error, "asked too long ago")
	require.Equal(t, 1, f.commits())
	require.Equal(t, []string{" M a.txt"}, f.status())

	req.UntilMS = time.Now().Add(time.Hour).UnixMilli()
	made := Commit(t.Context(), req, "1")
	require.False(t, made.Failed, made.Error)
	req.UntilMS = 1
	require.Equal(t, made.Commit, Commit(t.Context(), req, "1").Commit)
}

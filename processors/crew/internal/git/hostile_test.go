package git

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/turntable-streams/turntable/internal/crewbody"
)

// strange are names of files that shells, options and pathspecs treat specially.
var strange = []string{
	"with space.txt", "it's.txt", `say "hi".txt`, "-A", "--all", "-", "grün.txt", "日本.txt", "new\nline.txt", "*.txt", "[ab].txt", ":(top)x",
	":!x", "$(touch hacked)", "`id`", "a;b", "tab\tx", `back\slash`, "~", "#x", "src/-dash", "sub dir/é'\"",
}

func TestK02_StrangeNamesAreLiteral(t *testing.T) {
	f := newFixture(t, append([]string{"a.txt", "b.txt", "other"}, strange...)...)
	for _, name := range append([]string{"a.txt", "b.txt", "other"}, strange...) {
		f.write(name, "changed\n")
	}
	f.write("grün-neu.txt", "x\n")
	paths := append([]string{"grün-neu.txt"}, strange...)
	r := f.commit("1", paths, append([]string(nil), paths...))
	require.Empty(t, r.Missing)
	require.Equal(t, []string{" M a.txt", " M b.txt", " M other"}, f.status())
	require.NoFileExists(t, filepath.Join(f.dir, "hacked"))

	// The names of options and patterns are names of files that need not exist.
	f.remove("-A")
	f.remove("*.txt")
	f.commit("2", []string{"-A", "*.txt", "--no-such"}, []string{"-A", "*.txt"})
	require.Equal(t, "nothing to commit", f.refused("-A", ".", "*", "**", "*.txt", ":/", "a.tx?", "?.txt", "[ab].tx[t]"))
	require.Equal(t, []string{" M a.txt", " M b.txt", " M other"}, f.status())
}

func TestEveryStrangeNameAlone(t *testing.T) {
	f := newFixture(t, strange...)
	for i, name := range strange {
		f.write(name, "changed\n")
		f.commit(string(rune('a'+i)), []string{name}, []string{name})
	}
	require.Empty(t, f.status())
}

func TestDirectoriesWithStrangeNames(t *testing.T) {
	for _, dir := range []string{"-d", "a b", "*", "[x]", ":(glob)", "ü"} {
		f := newFixture(t, dir+"/x", "z/x", "x/x")
		f.write(dir+"/x", "changed\n")
		f.write(dir+"/deep/y", "new\n")
		f.write("z/x", "changed\n")
		f.write("x/x", "changed\n")
		f.commit("1", []string{dir + "/*"}, []string{dir + "/x", dir + "/deep/y"})
	}
}

func TestNamesThatAreNoTextAreReplacedInTheReceipt(t *testing.T) {
	f := newFixture(t, "a.txt")
	f.write("src/\xff.txt", "x\n")
	f.write("\xfe.txt", "x\n")
	r := Commit(t.Context(), f.request("src/*"), "1")
	require.False(t, r.Failed, r.Error)
	require.Equal(t, []string{"src/\uFFFD.txt"}, r.Files)
	require.Equal(t, []string{"\uFFFD.txt"}, r.Others)
	require.NotPanics(t, func() { crewbody.Encode(r) })
}

func TestMessagesAreTakenAsTheyAre(t *testing.T) {
	f := newFixture(t, "a.txt")
	for i, m := range []string{"# no comment", "-m x", "'; rm -rf /", "Line\n\nBody\n---\nmore", "", "\x00", "grün"} {
		f.write("a.txt", strings.Repeat("x", i+1))
		req := f.request("a.txt")
		req.Message, req.Author = m, "Ann <x@y>\nCommitter: z"
		id := string(rune('a' + i))
		r := Commit(t.Context(), req, id)
		require.False(t, r.Failed, "%q: %s", m, r.Error)
		want := strings.Trim(m, "\x00")
		if want == "" {
			want = "Changes"
		}
		require.Equal(t, want+"\n\nTurntable-Commit: "+id+" 7\n\n", f.git("log", "-1", "--format=%B"))
		require.Equal(t, "Ann x@yCommitter: z\n", f.git("log", "-1", "--format=%an"))
		require.Equal(t, r.Commit, Commit(t.Context(), req, id).Commit)
	}
}

// The process may have been started by a hook of another repository, whose variables name that repository.
func TestVariablesOfGitAreNotPassedOn(t *testing.T) {
	f := newFixture(t, "a.txt")
	f.write("a.txt", "mine\n")
	for name, value := range map[string]string{
		"GIT_DIR": "/nowhere", "GIT_WORK_TREE": "/nowhere", "GIT_INDEX_FILE": "/nowhere", "GIT_AUTHOR_NAME": "Eve", "GIT_TRACE": "1",
		"GIT_COMMITTER_DATE": "1 +0000", "GIT_GLOB_PATHSPECS": "1",
	} {
		t.Setenv(name, value)
	}
	r := Commit(t.Context(), f.request("a.txt"), "1")
	require.False(t, r.Failed, r.Error)
}

func TestHooksAndSignaturesDoNotRun(t *testing.T) {
	f := newFixture(t, "a.txt")
	ran := filepath.Join(f.dir, ".git", "ran")
	for _, hook := range []string{
		"pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "reference-transaction", "post-index-change", "post-checkout",
	} {
		name := filepath.Join(f.dir, ".git", "hooks", hook)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte("#!/bin/sh\ntouch '"+ran+"'\nexit 1\n"), 0o755))
	}
	f.git("config", "commit.gpgSign", "true")
	f.git("config", "gpg.program", "/bin/false")
	f.git("config", "core.fsmonitor", "touch '"+ran+"'; false")
	f.write("a.txt", "mine\n")
	r := Commit(t.Context(), f.request("a.txt"), "1")
	require.False(t, r.Failed, r.Error)
	require.Empty(t, r.Error)
	require.NoFileExists(t, ran)
}

func TestCommitEndsWithItsContext(t *testing.T) {
	f := newFixture(t, "a.txt")
	f.write("a.txt", "mine\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := Commit(ctx, f.request("a.txt"), "1")
	require.True(t, r.Failed)
	require.Contains(t, r.Error, "context canceled")
	require.Equal(t, 1, f.commits())
}

// A path is locked in Unicode's NFC. Its file may have a name in NFD, or in both forms.
func TestK02_FilesWhoseNamesAreDecomposedAreCommitted(t *testing.T) {
	const decomposed = "u\u0308ber/e\u0301.txt"
	names := []string{decomposed, "über/de\u0301j\u00e0.txt", "\u212b.txt", "plain/e\u0301.txt"}
	f := newFixture(t, append([]string{"über/other.txt", "e\u0301.txt/x"}, names...)...)
	for _, name := range append([]string{"über/other.txt"}, names...) {
		f.write(name, "changed\n")
	}
	require.Equal(t, []string{decomposed}, f.dirty("über/é.txt").Dirty)
	require.Equal(t, []string{"plain/e\u0301.txt"}, f.dirty("plain/é.txt").Dirty)
	r := f.commit("1", []string{"über/é.txt", "über/déjà.txt", "Å.txt", "é.txt"}, []string{decomposed, "über/de\u0301j\u00e0.txt", "\u212b.txt"})
	require.Equal(t, []string{"é.txt"}, r.Missing, "a directory is no file")
	require.Equal(t, []string{" M plain/e\u0301.txt", " M über/other.txt"}, f.status(), "what is not held is left out")
	require.Empty(t, f.dirty("über/é.txt", "é.txt/*").Dirty)

	f.remove("plain/e\u0301.txt")
	f.write("u\u0308ber/new.txt", "x\n")
	r = f.commit("2", []string{"plain/*", "über/*"}, []string{"plain/e\u0301.txt", "u\u0308ber/new.txt", "über/other.txt"})
	require.Empty(t, r.Missing)
	require.Empty(t, f.status())
}

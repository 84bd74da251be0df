//go:build lint

package layering_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	target = regexp.MustCompile(`(?m)^([a-z0-9][a-z0-9.-]*):`)
	// call is a call of make with its targets and variables.
	call = regexp.MustCompile(`\bmake((?: +[A-Za-z0-9._-]+(?:='[^']*'|=\S*)?)+)`)
	// action is what a step of a workflow uses.
	action = regexp.MustCompile(`(?m)\buses: *(\S+)`)
	pinned = regexp.MustCompile(`^[a-z-]+/[a-z-]+@[0-9a-f]{40}$`)
)

// workflows are the files of the jobs on GitHub.
func workflows(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for i, file := range files {
		files[i], err = filepath.Rel(root, file)
		require.NoError(t, err)
	}
	return files
}

func TestScriptsCallTargetsThatExist(t *testing.T) {
	targets := map[string]bool{}
	for _, match := range target.FindAllStringSubmatch(document(t, "Makefile"), -1) {
		targets[match[1]] = true
	}
	for _, name := range append(workflows(t), ".ci/run") {
		calls := targetsIn(document(t, name))
		require.NotEmpty(t, calls, name)
		for _, c := range calls {
			require.True(t, targets[c], "%s calls make %s", name, c)
		}
	}
}

// targetsIn are the targets of make that a script calls, without its comments.
func targetsIn(script string) (targets []string) {
	for line := range strings.Lines(script) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for _, match := range call.FindAllStringSubmatch(line, -1) {
			for _, word := range strings.Fields(match[1]) {
				if !strings.Contains(word, "=") {
					targets = append(targets, word)
				}
			}
		}
	}
	return targets
}

func TestTargetsOfAScriptAreRecognized(t *testing.T) {
	script := "# make nothing\nstep make test\nif node; then make test-node; fi\n - run: make model property FUZZTIME=1m KILLING='a|b'\n"
	require.Equal(t, []string{"test", "test-node", "model", "property"}, targetsIn(script))
}

func TestActionsArePinnedByHash(t *testing.T) {
	for _, name := range workflows(t) {
		uses := action.FindAllStringSubmatch(document(t, name), -1)
		require.NotEmpty(t, uses, name)
		for _, match := range uses {
			require.Regexp(t, pinned, match[1], name)
		}
	}
}

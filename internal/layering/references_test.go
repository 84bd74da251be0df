//go:build lint

package layering_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// absent matches references to documents that this repository does not contain: rule numbers, decisions, defects,
// sections of contracts, and files by name.
var absent = regexp.MustCompile(`\bR[0-9]{1,3}\b|\bD-[0-9]{2}\b|\b[Cc]ontracts? (section )?[0-9]|` +
	`\b(exactly-once|decisions|peers|plain-english|style-anchors|share-groups|DESIGN|[a-z]+-contract)\.md\b`)

func TestNoFileRefersToAnAbsentDocument(t *testing.T) {
	top := os.DirFS(root)
	var references []string
	require.NoError(t, fs.WalkDir(top, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || !checkedForReferences(name):
			return nil
		}
		text, err := fs.ReadFile(top, name)
		if err != nil {
			return err
		}
		references = append(references, referencesIn(name, string(text))...)
		return nil
	}))
	require.Empty(t, references, "state the reason instead of citing a document that a reader does not have")
}

// checkedForReferences reports whether a file is a source or a document. This file contains examples of references.
func checkedForReferences(name string) bool {
	switch path.Ext(name) {
	case ".go", ".md", ".proto":
		return name != "internal/layering/references_test.go"
	default:
		return path.Base(name) == "Makefile"
	}
}

// referencesIn returns file, line number and line of each reference to an absent document.
func referencesIn(name, text string) (references []string) {
	number := 0
	for line := range strings.Lines(text) {
		number++
		if absent.MatchString(line) {
			references = append(references, fmt.Sprintf("%s:%d: %s", name, number, strings.TrimSpace(line)))
		}
	}
	return references
}

func TestReferencesToAbsentDocumentsAreRecognized(t *testing.T) {
	for _, line := range []string{
		"// A repeat is ignored (R24).", "// D-20: results are objects.", "// See contract 3.4.", "// Contract 2.5, step 3",
		"// exactly-once.md section 9", "// as flightdeck-contract.md says",
	} {
		require.Len(t, referencesIn("a.go", line), 1, line)
	}
	for _, line := range []string{
		"// See README.md and CHANGELOG.md.", `"R2D2"`, "// the contract of the sink", "// at 2026-06-20", "// ID-20",
	} {
		require.Empty(t, referencesIn("a.go", line), line)
	}
}

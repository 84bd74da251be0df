//go:build lint

package layering_test

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const notWithin = `(?:^|[^\w./"$@:<>{}-])` // not the end of an address, a path or a placeholder

var (
	// qualifiedName is pkg.Name or pkg.Type.Member.
	qualifiedName = regexp.MustCompile(notWithin + `([a-z][a-z0-9]*)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)
	memberName    = regexp.MustCompile(notWithin + `([A-Z]\w*)\.([A-Za-z]\w*)`)
	// compoundName is a word with a capital in it, which is an identifier.
	compoundName = regexp.MustCompile(notWithin + `([A-Z][a-z]\w*[A-Z]\w*)\b`)
	packageName  = regexp.MustCompile(`(?:(\w+)\s+)?\bpackage\s+([a-z][a-z0-9]*(?:/[a-z0-9]+)*)`)
	pathName     = regexp.MustCompile(notWithin + `([a-z][a-z0-9]*)((?:/[a-z0-9]+)+)\b(?:[^\w./*-]|\.\s|$)`)
)

// properNames are words that look like identifiers and are none of this module.
var properNames = []string{
	"AllowedUntrustedInternalConnections",                 // a setting of Mattermost
	"AlterConfigs", "OffsetForLeaderEpoch", "MirrorMaker", // Kafka
	"BotFather",     // Telegram
	"CachedContent", // Gemini
	"GiB", "JavaScript", "MurmurHash2", "OpenAI", "OpenID", "StatefulSet", "WebSocket",
}

// afterPackage are words after "package" that name none.
var afterPackage = []string{"and", "below", "benchmark", "documentation", "main"}

// slashed are words with the name of a package before a slash that name none.
var slashed = []string{"text/plain", "text/html", "channel/account", "host/path", "turns/s"}

// codeBlock matches the code in a file, which has names of its own.
var codeBlock = regexp.MustCompile("(?s)\n *```go\n.*?```")

// text is a comment, or a file that is no code.
type text struct {
	at, text string            // at is the file
	of       *source           // nil for a file that is no code
	imports  map[string]string // import paths by the names that they have in the file
}

func TestDocumentationNamesWhatExists(t *testing.T) {
	c := sources(t)
	texts := c.comments()
	require.Greater(t, len(texts), 10_000)
	for _, name := range documents(t) {
		if name != "CHANGELOG.md" { // tells of what is gone
			texts = append(texts, text{at: name, text: codeBlock.ReplaceAllString(document(t, name), "")})
		}
	}
	var wrong []string
	for _, d := range texts {
		for _, name := range c.unresolved(d) {
			wrong = append(wrong, d.at+": "+name)
		}
	}
	require.Empty(t, wrong, "these names in comments and documents exist no more")
}

// comments are those of all files but tests and generated ones.
func (c *corpus) comments() (texts []text) {
	for _, named := range c.packages {
		for _, p := range named {
			for _, file := range p.files {
				imports := map[string]string{}
				for _, i := range file.Imports {
					importPath := strings.Trim(i.Path.Value, `"`)
					imports[path.Base(importPath)] = importPath
					if i.Name != nil {
						imports[i.Name.Name] = importPath
					}
				}
				for _, group := range file.Comments {
					at := p.dir + "/" + filepath.Base(c.positions.Position(group.Pos()).Filename)
					texts = append(texts, text{at, group.Text(), p, imports})
				}
			}
		}
	}
	return texts
}

// unresolved returns the names in a text that name nothing.
func (c *corpus) unresolved(d text) (names []string) {
	check := func(exists bool, name string) {
		if !exists {
			names = append(names, name)
		}
	}
	for _, m := range qualifiedName.FindAllStringSubmatch(d.text, -1) {
		check(c.exported(d, m[1], m[2], m[3]), strings.TrimRight(m[1]+"."+m[2]+"."+m[3], "."))
	}
	for _, m := range memberName.FindAllStringSubmatch(d.text, -1) {
		check(d.of == nil || !d.of.types[m[1]] || c.packages.member(d.of, m[1], m[2]), m[1]+"."+m[2])
	}
	for _, m := range compoundName.FindAllStringSubmatch(d.text, -1) {
		check(c.words[m[1]] || c.words[strings.TrimSuffix(m[1], "s")] || slices.Contains(properNames, strings.TrimSuffix(m[1], "s")) ||
			d.of == nil && strings.Contains(c.tests, m[1]), m[1])
	}
	for _, m := range packageName.FindAllStringSubmatch(d.text, -1) {
		noun := slices.Contains([]string{"a", "ai", "each", "every", "one", "own", "json", "root", "that", "the", "this"}, strings.ToLower(m[1]))
		check(noun || slices.Contains(afterPackage, m[2]) || c.paths[m[2]], "package "+m[2])
	}
	for _, m := range pathName.FindAllStringSubmatch(d.text, -1) {
		check(c.packages[m[1]] == nil || c.paths[m[1]+m[2]] || slices.Contains(slashed, m[1]+m[2]) || isFile(d, m[1]+m[2]), m[1]+m[2])
	}
	return names
}

// exported reports whether a package of that name has the name, and the type of the name the member. Packages of other modules and
// variables have all.
func (c *corpus) exported(d text, pkg, name, member string) bool {
	candidates := c.packages[pkg]
	if importPath, ok := d.imports[pkg]; ok {
		candidates = slices.DeleteFunc(slices.Clone(candidates), func(p *source) bool { return module+"/"+p.dir != importPath })
	}
	if len(candidates) == 0 {
		return member == "" || c.paths[pkg]
	}
	return slices.ContainsFunc(candidates, func(p *source) bool {
		return p.members[""][name] && (member == "" || c.packages.member(p, name, member))
	})
}

// isFile reports whether a path is one of a file or folder, seen from the top or from the file of the text.
func isFile(d text, name string) bool {
	_, top := os.Stat(filepath.Join(root, name))
	_, beside := os.Stat(filepath.Join(root, path.Dir(d.at), name))
	return top == nil || beside == nil
}

func TestNamesOfDocumentationAreRecognized(t *testing.T) {
	c := sources(t)
	of := c.packages["turn"][0]
	for _, name := range []string{
		"turn.Confi", "topics.Config.Gate", "[turn.Config.Approve]", "Config.Approve", "settings.File.Settings", "package no/turn",
		"(turn/door)", "see package\ndoor.", "No" + "Such" + "Thing",
	} {
		require.Len(t, c.unresolved(text{text: name, of: of}), 1, name)
	}
	for _, name := range []string{
		"turn.Config.Approval.", "Config.Approval", "goka.Context", "package turnhttp", "this package has", "turn/turnhttp",
		"https://turn/door", "internal/cut/claim.go", "FlightDeck", "a text/plain part",
	} {
		require.Empty(t, c.unresolved(text{text: name, of: of}), name)
	}
}

// A caller can neither declare a variable of an unexported type nor read its documentation.
func TestExportedFunctionsUseExportedTypes(t *testing.T) {
	c := sources(t)
	var wrong []string
	for _, named := range c.packages {
		for _, p := range named {
			for _, file := range p.files {
				for _, e := range signatures(file) {
					for _, at := range p.hiddenTypes(e) {
						wrong = append(wrong, c.positions.Position(at.Pos()).String()+": "+at.Name)
					}
				}
			}
		}
	}
	require.Empty(t, wrong, "exported functions, methods or fields have unexported types")
}

// signatures are the types of a file's exported functions, methods and fields.
func signatures(file *ast.File) (types []ast.Expr) {
	ast.Inspect(file, func(n ast.Node) bool {
		var fields *ast.FieldList
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Name.IsExported() && (n.Recv == nil || ast.IsExported(typeName(n.Recv.List[0].Type))) {
				types = append(types, &ast.FuncType{Params: n.Type.Params, Results: n.Type.Results})
			}
			return false
		case *ast.TypeSpec:
			return n.Name.IsExported()
		case *ast.StructType:
			fields = n.Fields
		case *ast.InterfaceType:
			fields = n.Methods
		default:
			return true
		}
		for _, f := range fields.List {
			if slices.ContainsFunc(f.Names, (*ast.Ident).IsExported) {
				types = append(types, f.Type)
			}
		}
		return false
	})
	return types
}

// hiddenTypes are the unexported types of p in an expression.
func (p *source) hiddenTypes(e ast.Node) (names []*ast.Ident) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			return false // of another package
		case *ast.Field:
			names = append(names, p.hiddenTypes(n.Type)...)
			return false // not the parameter's name
		case *ast.Ident:
			if !n.IsExported() && p.types[n.Name] {
				names = append(names, n)
			}
		}
		return true
	})
	return names
}

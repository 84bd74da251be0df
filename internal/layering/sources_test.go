//go:build lint

package layering_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// source is a package of the module, as its files declare it under all build tags together.
type source struct {
	dir, name string
	files     []*ast.File // without tests and generated files
	// members has the fields and methods of each type, and under "" what the package declares.
	members map[string]map[string]bool
	types   map[string]bool
	// embeds has the types that a type embeds or stands for. Those of other packages have the package's name before a dot.
	embeds map[string][]string
}

// modulePackages are the packages of the module by their names.
type modulePackages map[string][]*source

// corpus is the module as it is parsed.
type corpus struct {
	positions *token.FileSet
	packages  modulePackages
	paths     map[string]bool // import paths of all packages of the module and of those that it imports, and their ends
	words     map[string]bool // identifiers in code and words in literals
	tests     string          // names of tests, benchmarks and examples
}

var word = regexp.MustCompile(`\w+`)

// sources is the module, parsed once for all tests.
func sources(t *testing.T) *corpus {
	t.Helper()
	c, err := parsed()
	require.NoError(t, err)
	return c
}

var parsed = sync.OnceValues(func() (*corpus, error) {
	c := &corpus{positions: token.NewFileSet(), packages: modulePackages{}, paths: map[string]bool{}, words: map[string]bool{}}
	byDir := map[string]*source{}
	return c, fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || d.Name() == "testdata"):
			return fs.SkipDir
		case path.Ext(name) != ".go":
			return nil
		}
		file, err := parser.ParseFile(c.positions, filepath.Join(root, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		c.read(file)
		if strings.HasSuffix(name, "_test.go") {
			return nil
		}
		dir := path.Dir(name)
		p := byDir[dir]
		if p == nil {
			p = &source{dir: dir, name: file.Name.Name, members: map[string]map[string]bool{}, types: map[string]bool{}, embeds: map[string][]string{}}
			byDir[dir], c.packages[p.name] = p, append(c.packages[p.name], p)
			c.know(module + "/" + dir)
		}
		if !ast.IsGenerated(file) {
			p.files = append(p.files, file)
		}
		p.declare(file)
		return nil
	})
})

// read collects the words of a file's code.
func (c *corpus) read(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			c.know(strings.Trim(n.Path.Value, `"`))
		case *ast.Ident:
			c.words[n.Name] = true
		case *ast.BasicLit:
			for _, w := range word.FindAllString(n.Value, -1) {
				c.words[w] = true
			}
		case *ast.FuncDecl:
			c.tests += n.Name.Name + " "
		}
		return true
	})
}

func (c *corpus) know(importPath string) {
	for found := true; found; _, importPath, found = strings.Cut(importPath, "/") {
		c.paths[importPath] = true
	}
}

func (p *source) add(typ, name string) {
	if p.members[typ] == nil {
		p.members[typ] = map[string]bool{}
	}
	p.members[typ][name] = true
}

func (p *source) declare(file *ast.File) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			typ := ""
			if d.Recv != nil {
				typ = typeName(d.Recv.List[0].Type)
			}
			p.add(typ, d.Name.Name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, n := range s.Names {
						p.add("", n.Name)
					}
				case *ast.TypeSpec:
					p.add("", s.Name.Name)
					p.types[s.Name.Name] = true
					p.declareType(s.Name.Name, s.Type)
				}
			}
		}
	}
}

func (p *source) declareType(typ string, e ast.Expr) {
	var fields *ast.FieldList
	switch e := e.(type) {
	case *ast.StructType:
		fields = e.Fields
	case *ast.InterfaceType:
		fields = e.Methods
	default:
		p.embeds[typ] = append(p.embeds[typ], typeName(e))
		return
	}
	for _, f := range fields.List {
		for _, n := range f.Names {
			p.add(typ, n.Name)
		}
		if len(f.Names) == 0 {
			name := typeName(f.Type)
			p.embeds[typ] = append(p.embeds[typ], name)
			p.add(typ, name[strings.LastIndex(name, ".")+1:])
		}
	}
}

// typeName is the name of a type, with its package if that is another one, or "" if it has none.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.SelectorExpr:
		return typeName(e.X) + "." + e.Sel.Name
	}
	return ""
}

// member reports whether a type of p has a field or method, its own or that of a type that it embeds or stands for. Types of other
// modules have all.
func (all modulePackages) member(p *source, typ, name string) bool {
	if p.members[typ][name] {
		return true
	}
	return slices.ContainsFunc(p.embeds[typ], func(other string) bool {
		pkg, foreign, qualified := strings.Cut(other, ".")
		switch {
		case other == typ:
			return false
		case !qualified:
			return other != "" && all.member(p, other, name)
		}
		return len(all[pkg]) == 0 ||
			slices.ContainsFunc(all[pkg], func(q *source) bool { return all.member(q, foreign, name) })
	})
}

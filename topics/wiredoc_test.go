package topics_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// source is what the source of package topics says about its types, fields and constants.
type source struct {
	comments  map[string]string            // of types and constants
	fields    map[string]map[string]string // the comments of fields, by type and field
	constants []constant                   // in the order in which they are declared
}

// constant is a constant that is a text.
type constant struct{ name, typ, value string }

// values returns the values of the constants that is accepts.
func (s *source) values(is func(constant) bool) (values []string) {
	for _, c := range s.constants {
		if is(c) && !slices.Contains(values, c.value) {
			values = append(values, c.value)
		}
	}
	return values
}

func parse(t testing.TB) *source {
	t.Helper()
	s := &source{comments: map[string]string{}, fields: map[string]map[string]string{}}
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					s.comments[spec.Name.Name] = text(decl.Doc, spec.Doc)
					if structure, ok := spec.Type.(*ast.StructType); ok {
						s.fields[spec.Name.Name] = commentsOf(structure)
					}
				case *ast.ValueSpec:
					s.constant(decl, spec)
				}
			}
		}
	}
	return s
}

func (s *source) constant(decl *ast.GenDecl, spec *ast.ValueSpec) {
	if decl.Tok != token.CONST || len(spec.Values) != 1 {
		return
	}
	literal, ok := spec.Values[0].(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return
	}
	c := constant{name: spec.Names[0].Name}
	c.value, _ = strconv.Unquote(literal.Value)
	if named, ok := spec.Type.(*ast.Ident); ok {
		c.typ = named.Name
	}
	s.constants = append(s.constants, c)
	doc := spec.Doc
	if !decl.Lparen.IsValid() {
		doc = decl.Doc
	}
	s.comments[c.name] = text(doc, spec.Comment)
}

// commentsOf returns the comments of the fields of a struct. That of a field without one is the comment that names it.
func commentsOf(structure *ast.StructType) map[string]string {
	of := map[string]string{}
	var before []string
	for _, f := range structure.Fields.List {
		comment := text(f.Doc, f.Comment)
		if f.Doc != nil {
			before = append(before, comment)
		}
		for _, name := range f.Names {
			for _, earlier := range before {
				if comment == "" && regexp.MustCompile(`\b`+name.Name+`\b`).MatchString(earlier) {
					comment = earlier
				}
			}
			of[name.Name] = comment
		}
	}
	return of
}

func text(comments ...*ast.CommentGroup) string {
	var b strings.Builder
	for _, c := range comments {
		b.WriteString(c.Text() + " ")
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

var (
	identifier = regexp.MustCompile(`\b[A-Za-z]\w*\b`)
	prefixed   = regexp.MustCompile(`one of the (\w+) constants`)
	// seeFunction refers to Go.
	seeFunction = regexp.MustCompile(`, see (the function |Wrap)\w+`)
	valueOf     = regexp.MustCompile(`^\w+ is the value of [^:.]*[:.] ?`)
)

// wire rewrites a comment for readers who see the JSON: names are the members' names by the fields of a struct, constants are
// their values, and nil is null.
func (s *source) wire(comment string, names map[string]string) string {
	comment = seeFunction.ReplaceAllString(comment, "")
	comment = prefixed.ReplaceAllStringFunc(comment, func(found string) string {
		prefix := prefixed.FindStringSubmatch(found)[1]
		return "one of " + quoted(s.values(func(c constant) bool { return strings.HasPrefix(c.name, prefix) }))
	})
	rewritten := identifier.ReplaceAllStringFunc(comment, func(word string) string {
		if name, ok := names[word]; ok {
			return name
		}
		if i := slices.IndexFunc(s.constants, func(c constant) bool { return c.name == word }); i >= 0 {
			return strconv.Quote(s.constants[i].value)
		}
		if word == "nil" {
			return "null"
		}
		return word
	})
	if rewritten != "" && !strings.HasSuffix(rewritten, ".") {
		rewritten += "."
	}
	if rewritten == "" || rewritten[0] != comment[0] {
		return rewritten
	}
	return capital(rewritten)
}

// quoted lists values.
func quoted(values []string) string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = strconv.Quote(v)
	}
	return strings.Join(list, ", ")
}

// about is the comment of a record type, without what topic it is the value of.
func (s *source) about(typ reflect.Type) string {
	return s.wire(capital(valueOf.ReplaceAllString(s.comments[typ.Name()], "")), memberNames(typ))
}

func capital(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

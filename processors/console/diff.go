package console

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// edit is a text that a tool replaces by another one.
type edit struct{ file, before, after string }

// editNames are how tools name the texts of an edit.
var editNames = []struct{ before, after string }{
	{"old_string", "new_string"}, {"oldText", "newText"}, {"old_str", "new_str"}, {"old_text", "new_text"}, {"before", "after"},
}

// mostEdits bounds the edits of a request that are shown as such. The arguments are shown too.
const mostEdits = 20

// fileNames are how tools name the file of an edit.
var fileNames = []string{"file_path", "path", "file"}

// mostDepth is how deep edits are looked for.
const mostDepth = 100

// edits returns the edits in the arguments of a call, wherever they are, in their order. An edit is of the file that its object names, or
// of that of the object around it. Names that disagree are all given.
func edits(args topics.Raw) (list []edit) {
	var walk func(raw jsontext.Value, files []string, depth int)
	walk = func(raw jsontext.Value, files []string, depth int) {
		d := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		opening, err := d.ReadToken()
		if err != nil || depth > mostDepth {
			return
		}
		var inner []jsontext.Value
		texts := map[string]string{}
		for err == nil && (d.PeekKind() != ']' && d.PeekKind() != '}') {
			name := ""
			if opening.Kind() == '{' {
				token, failed := d.ReadToken()
				if failed != nil {
					return
				}
				name = token.String()
			}
			var v jsontext.Value
			if v, err = d.ReadValue(); err != nil {
				return
			}
			switch v.Kind() {
			case '{', '[':
				inner = append(inner, slices.Clone(v))
			case '"':
				var text string
				if json.Unmarshal(v, &text, jsontext.AllowInvalidUTF8(true)) == nil {
					texts[name] = text
					if slices.Contains(fileNames, name) && !slices.Contains(files, text) {
						files = append(slices.Clone(files), text)
					}
				}
			}
		}
		for _, n := range editNames {
			if after, ok := texts[n.after]; ok && len(list) < mostEdits {
				list = append(list, edit{strings.Join(files, " or "), texts[n.before], after})
			}
		}
		for _, v := range inner {
			walk(v, files, depth+1)
		}
	}
	if k := jsontext.Value(args).Kind(); k == '{' || k == '[' {
		walk(jsontext.Value(args), nil, 0)
	}
	return list
}

// diff is the difference of two texts by lines.
type diff struct {
	File  string
	Lines []diffLine
	Whole bool // the texts are too long to be compared: all lines of both are there
}

// diffLine is a line that is in both texts (Sign is a space), in the first only (-) or in the second only (+).
type diffLine struct{ Sign, Text string }

// mostCompared is how many pairs of lines are compared at most.
const mostCompared = 4_000_000

func diffOf(before, after, file string) diff {
	a, b := lines(before), lines(after)
	d := diff{File: visible(file)}
	add := func(sign string, texts ...string) {
		for _, t := range texts {
			d.Lines = append(d.Lines, diffLine{sign, t})
		}
	}
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	add(" ", a[:head]...)
	same, end := a[len(a)-tail:], tail
	a, b = a[head:len(a)-end], b[head:len(b)-end]
	if d.Whole = len(a)*len(b) > mostCompared; d.Whole {
		add("-", a...)
		add("+", b...)
	} else {
		// longest[i][j] is the length of the longest common sequence of the lines from i and from j on.
		longest := make([][]int32, len(a)+1)
		for i := range longest {
			longest[i] = make([]int32, len(b)+1)
		}
		for i := len(a) - 1; i >= 0; i-- {
			for j := len(b) - 1; j >= 0; j-- {
				if longest[i][j] = max(longest[i+1][j], longest[i][j+1]); a[i] == b[j] {
					longest[i][j] = longest[i+1][j+1] + 1
				}
			}
		}
		i, j := 0, 0
		for i < len(a) || j < len(b) {
			switch {
			case i < len(a) && j < len(b) && a[i] == b[j]:
				add(" ", a[i])
				i, j = i+1, j+1
			case j == len(b) || i < len(a) && longest[i+1][j] >= longest[i][j+1]:
				add("-", a[i])
				i++
			default:
				add("+", b[j])
				j++
			}
		}
	}
	add(" ", same...)
	return d
}

func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// Changed says how many lines differ.
func (d diff) Changed() string {
	removed, added := 0, 0
	for _, l := range d.Lines {
		switch l.Sign {
		case "-":
			removed++
		case "+":
			added++
		}
	}
	return several(removed, "line") + " removed, " + strconv.Itoa(added) + " added"
}

package processors

import (
	"fmt"
	"slices"
	"strings"
)

// Mermaid returns the topology as a Mermaid flowchart. Topics are nodes and arrows have no labels, so that nothing overlaps: a group is a
// rectangle, a program has double sides, a topic is rounded, a table is a cylinder, and a dotted arrow is a lookup or the loop. Dead-letter topics are
// left out.
func (t Topology) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	ids := map[string]string{}
	node := func(name, open, end string) string {
		if ids[name] == "" {
			ids[name] = fmt.Sprintf("n%d", len(ids))
			fmt.Fprintf(&b, "    %s%s\"%s\"%s\n", ids[name], open, strings.ReplaceAll(name, `"`, "#quot;"), end)
		}
		return ids[name]
	}
	tables := map[string]bool{}
	for _, g := range t.Groups {
		tables[g.Table] = true
		for _, name := range slices.Concat(g.Lookups, g.Joins) {
			tables[name] = true
		}
	}
	arrows := func(of string, reads, writes []string) {
		topic := func(name string) string {
			if tables[name] {
				return node(name, "[(", ")]")
			}
			return node(name, "([", "])")
		}
		for _, name := range reads {
			if arrow := topic(name); slices.Contains(writes, name) {
				fmt.Fprintf(&b, "    %s <--> %s\n", of, arrow)
			} else {
				fmt.Fprintf(&b, "    %s --> %s\n", arrow, of)
			}
		}
		for _, name := range writes {
			if !slices.Contains(reads, name) {
				fmt.Fprintf(&b, "    %s --> %s\n", of, topic(name))
			}
		}
	}
	for _, g := range t.Groups {
		of := node("group "+g.Group, "[", "]")
		arrows(of, slices.Concat(g.Inputs, g.Joins), g.Outputs)
		for _, name := range g.Lookups {
			fmt.Fprintf(&b, "    %s -.-> %s\n", node(name, "[(", ")]"), of)
		}
		if g.Table != "" {
			fmt.Fprintf(&b, "    %s <--> %s\n", of, node(g.Table, "[(", ")]"))
		}
		if g.Loop != "" {
			fmt.Fprintf(&b, "    %s <-.-> %s\n", of, node(g.Loop, "([", "])"))
		}
	}
	for _, p := range t.Programs {
		arrows(node("program "+p.Name, "[[", "]]"), p.Reads, p.Writes)
	}
	return b.String()
}

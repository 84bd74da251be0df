package kill

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// The most that is kept of what a process logs, and of the goroutines that it dumps.
const (
	logLimit  = 24 << 10
	dumpLimit = 4 << 20
)

// output keeps the end of what a process logs.
type output struct {
	mu      sync.Mutex
	kept    []byte
	dropped int
	dumps   bool // since dumpMark
	dumped  bytes.Buffer
}

// dumpMark is what a process prints before its goroutines when it gets SIGQUIT.
var dumpMark = []byte("SIGQUIT: quit")

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dumps {
		o.dumped.Write(p[:min(len(p), dumpLimit-o.dumped.Len())])
		return len(p), nil
	}
	from := max(0, len(o.kept)-len(dumpMark))
	o.kept = append(o.kept, p...)
	if at := bytes.Index(o.kept[from:], dumpMark); at >= 0 {
		o.dumps = true
		o.dumped.Write(o.kept[from+at:])
		o.kept = o.kept[:from+at]
	}
	if over := len(o.kept) - logLimit; over > logLimit { // rarely, and then much
		o.kept = append([]byte(nil), o.kept[over:]...)
		o.dropped += over
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if over := max(0, len(o.kept)-logLimit); o.dropped+over > 0 {
		return fmt.Sprintf("(%d bytes before)…%s", o.dropped+over, o.kept[over:])
	}
	return string(o.kept)
}

// last is the last line.
func (o *output) last() string {
	lines := strings.Split(strings.TrimSpace(o.String()), "\n")
	return lines[len(lines)-1]
}

func (o *output) dump() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.dumped.String()
}

// frameLimit is how many frames of a stack are printed.
const frameLimit = 14

// condensed prints goroutines that do the same once, with their number. Those of which there are few come first: what hangs is
// among them, and not among the connections of a client.
func condensed(dump string) string {
	type stack struct {
		text  string
		count int
	}
	var stacks []*stack
	seen := map[string]*stack{}
	for block := range strings.SplitSeq(dump, "\n\n") {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		head, rest, isGoroutine := strings.Cut(lines[0], "[")
		if !isGoroutine || !strings.HasPrefix(head, "goroutine ") {
			continue
		}
		state, _, _ := strings.Cut(rest, "]")
		state, _, _ = strings.Cut(state, ",") // without its duration
		text := "[" + state + "]"
		frames := 0
		for _, line := range lines[1:] {
			if strings.HasPrefix(line, "\t") || frames == frameLimit {
				continue
			}
			frames++
			text += "\n  " + line[:max(strings.LastIndexByte(line, '('), 0)]
		}
		if seen[text] == nil {
			seen[text] = &stack{text: text}
			stacks = append(stacks, seen[text])
		}
		seen[text].count++
	}
	slices.SortStableFunc(stacks, func(a, b *stack) int { return cmp.Compare(a.count, b.count) })
	var b strings.Builder
	for _, s := range stacks {
		fmt.Fprintf(&b, "\n%d goroutines %s", s.count, s.text)
	}
	return b.String()
}

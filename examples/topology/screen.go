package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/turntable-streams/turntable/processors"
)

// screen prints for people; its methods may be called concurrently.
type screen struct {
	mu     sync.Mutex
	out    io.Writer
	colour bool
	quiet  bool // no records
}

// newScreen uses colours only on a terminal, and only if NO_COLOR is not set.
func newScreen(out io.Writer) *screen {
	return &screen{out: out, colour: terminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func terminal(v any) bool {
	file, ok := v.(*os.File)
	if !ok {
		return false
	}
	stat, err := file.Stat()
	return err == nil && stat.Mode()&os.ModeCharDevice != 0
}

// The colours, as codes of the terminal.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	blue   = "34"
	purple = "35"
	cyan   = "36"
	grey   = "90"
	bold   = "1"
)

func (s *screen) paint(colour, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// print prints a text whole, whatever others print.
func (s *screen) print(text, end string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprint(s.out, text, end)
}

// note prints a line with a label in front.
func (s *screen) note(colour, label, format string, args ...any) {
	s.print(s.paint(colour, fmt.Sprintf("%-8s", label))+" "+oneLine(fmt.Sprintf(format, args...), noLimit), "\n")
}

// record prints time, topic, key and description of a record.
func (s *screen) record(t shown, r processors.Inbound) {
	if s.quiet {
		return
	}
	s.print(fmt.Sprintf("%s  %s %-21s %s",
		s.paint(grey, r.Timestamp.Format("15:04:05.000")), s.paint(t.colour, fmt.Sprintf("%-37s", t.Name)),
		oneLine(string(r.Key), keyLimit), oneLine(strings.TrimSpace(t.say(r)), lineLimit)), "\n")
}

// prompt prints a prompt if the output is a terminal.
func (s *screen) prompt(in io.Reader) {
	if terminal(in) && terminal(s.out) {
		s.print(s.paint(bold, "> "), "")
	}
}

// The longest text in a line, in characters.
const (
	keyLimit  = 21
	lineLimit = 100
	noLimit   = 0
)

// oneLine replaces characters that would break the line or the terminal, and cuts a longer text.
func oneLine(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ' || r == 0x7f:
			return -1
		}
		return r
	}, s)
	if runes := []rune(s); limit != noLimit && len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return s
}

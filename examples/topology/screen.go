package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// screen prints for people; its methods may be called concurrently.
type screen struct {
	mu     sync.Mutex
	out    io.Writer
	colour bool
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

var colours = map[string]string{
	messageInput: cyan, enrichedInput: cyan, thinkResponses: purple, toolUses: yellow, toolUseResults: yellow,
	toolUseComplete: yellow, messageOutput: green, replyTo: blue, sessionControl: blue,
	memoirLookups: cyan, memoirSnapshots: blue, memoirContext: green,
	gateRequests: blue, gateDecisions: blue, gateOutcomes: blue, toolUseDLQ: red, thinkDLQ: red, groupDLQ: red,
}

func (s *screen) paint(colour, text string) string {
	if !s.colour || colour == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (s *screen) line(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, format+"\n", args...)
}

// note prints a line with a label in front.
func (s *screen) note(colour, word, format string, args ...any) {
	s.line("%s %s", s.paint(colour, fmt.Sprintf("%-8s", word)), fmt.Sprintf(format, args...))
}

// The widths of the columns of a record.
const (
	topicWidth = 37
	keyWidth   = 21
)

// record prints time, topic, key and summary.
func (s *screen) record(r *kgo.Record) {
	agent, suffix := split(r.Topic)
	key := "(no key)"
	if r.Key != nil {
		key = oneLine(string(r.Key))
	}
	s.line("%s  %s %-*s %s",
		s.paint(grey, r.Timestamp.Format("15:04:05.000")),
		s.paint(colours[suffix], fmt.Sprintf("%-*s", topicWidth, r.Topic)),
		keyWidth, key, strings.TrimSpace(summarize(agent, r)))
}

// prompt prints a prompt if the output is a terminal.
func (s *screen) prompt(in io.Reader) {
	if !terminal(in) || !terminal(s.out) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprint(s.out, s.paint(bold, "> "))
}

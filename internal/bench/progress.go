package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// progress shows the progress in one line on a terminal. It prints nothing if the output is not a terminal.
type progress struct {
	to    io.Writer
	what  string
	of    phase
	start time.Time
	last  time.Time
}

func newProgress(w io.Writer) *progress {
	f, ok := w.(*os.File)
	if !ok {
		return &progress{}
	}
	if st, err := f.Stat(); err != nil || st.Mode()&os.ModeCharDevice == 0 {
		return &progress{}
	}
	return &progress{to: f}
}

func (p *progress) begin(what string, of phase) {
	p.what, p.of, p.start = what, of, time.Now()
	p.last = time.Time{}
	p.turn(0)
}

// turn updates the line with the number of turns that have ended.
func (p *progress) turn(done int) {
	if p.to == nil || time.Since(p.last) < 200*time.Millisecond {
		return
	}
	p.last = time.Now()
	elapsed := p.last.Sub(p.start)
	line := fmt.Sprintf("%s: %d turns", p.what, done)
	if p.of.turns > 0 {
		line += fmt.Sprintf(" of %d", p.of.turns)
	} else {
		line += fmt.Sprintf(", %v of %v", elapsed.Round(time.Second), p.of.duration)
	}
	if elapsed > time.Second {
		line += fmt.Sprintf(", %.0f/s", float64(done)/elapsed.Seconds())
	}
	fmt.Fprintf(p.to, "\r\x1b[K%s", line)
}

func (p *progress) clear() {
	if p.to != nil {
		fmt.Fprint(p.to, "\r\x1b[K")
	}
}

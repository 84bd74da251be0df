package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// event is a line of go test -json. Test is empty for what concerns the package, ImportPath is set while it is compiled.
type event struct {
	Action, Package, ImportPath, Test, Output, FailedBuild string
}

// test is a test of a package in one run, or the package itself if name is empty.
type test struct{ run, pkg, name string }

// history is what became of a test in the attempts of a run.
type history struct {
	output   []string // of the attempt that is running
	failures [][]string
	passed   bool // in the last attempt
}

// tests lists the failed and the unstable tests of the files of events in a directory.
func tests(dir string, out io.Writer) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s has no file of a test run", dir)
	}
	if err := os.RemoveAll(filepath.Join(dir, "failures")); err != nil { // of an earlier run
		return err
	}
	for _, verdict := range []string{"UNSTABLE", "FAILED"} {
		for _, file := range files {
			histories, order, err := load(file)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			for _, t := range order {
				h := histories[t]
				if h.passed != (verdict == "UNSTABLE") {
					continue
				}
				if err := h.report(dir, verdict, t, out); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// load returns the tests of a file that failed at least once, in the order of their first failure.
func load(file string) (map[test]*history, []test, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	run := strings.TrimSuffix(filepath.Base(file), ".json")
	all, builds, order := map[test]*history{}, map[string][]string{}, []test(nil)
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			continue // what a command prints beside its events, or a last line that was cut
		}
		if e.Action == "build-output" {
			builds[e.ImportPath] = append(builds[e.ImportPath], e.Output)
			continue
		}
		t := test{run, e.Package, e.Test}
		h := all[t]
		if h == nil {
			h = &history{}
			all[t] = h
		}
		switch e.Action {
		case "output":
			h.output = append(h.output, e.Output)
		case "pass", "skip":
			h.output, h.passed = nil, true
		case "fail":
			if len(h.failures) == 0 {
				order = append(order, t)
			}
			h.failures = append(h.failures, slices.Concat(builds[e.FailedBuild], h.output))
			h.output, h.passed = nil, false
		}
	}
	return all, slices.DeleteFunc(order, func(t test) bool { return explained(t, order, all) }), nil
}

// explained reports whether a test failed because another did, with the same end: one of its subtests, or any test of a package.
func explained(t test, failed []test, all map[test]*history) bool {
	return slices.ContainsFunc(failed, func(other test) bool {
		if other.pkg != t.pkg || other.name == t.name || all[other].passed != all[t].passed {
			return false
		}
		return t.name == "" || strings.HasPrefix(other.name, t.name+"/")
	})
}

var unsafe = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// report prints a test with the first lines of its first failure, and writes what its failed attempts printed to a file.
func (h *history) report(dir, verdict string, t test, out io.Writer) error {
	name := t.name
	if name == "" {
		name = "the package"
	}
	first := filepath.Join(dir, "failures", unsafe.ReplaceAllString(t.run+"-"+t.pkg+"-"+name, "_")+".log")
	if err := os.MkdirAll(filepath.Dir(first), 0o755); err != nil {
		return err
	}
	var log strings.Builder
	for n, lines := range h.failures {
		fmt.Fprintf(&log, "=== attempt %d\n%s\n", n+1, strings.Join(lines, ""))
	}
	if err := os.WriteFile(first, []byte(log.String()), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s, %s, make %s, failed attempts: %d\n", verdict, name, t.pkg, t.run, len(h.failures))
	for _, line := range cause(h.failures[0]) {
		fmt.Fprintf(out, "    %s\n", line)
	}
	fmt.Fprintf(out, "    log: %s\n", first)
	return nil
}

// begins matches the line with which an explanation of a failure begins.
var begins = regexp.MustCompile(`^\s*(Error:|panic:|fatal error:|WARNING: DATA RACE|found unexpected goroutines|\S+\.go:\d+:\S* .)`)

// noise matches lines that say that a test runs.
var noise = regexp.MustCompile(`^\s*(=== (RUN|PAUSE|CONT|NAME)|--- |FAIL|exit status|Error Trace:|$)`)

// cause returns the first three lines that explain a failure, or the last three if no line looks like an explanation.
func cause(output []string) (lines []string) {
	for _, line := range strings.Split(strings.Join(output, ""), "\n") {
		if !noise.MatchString(line) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	at := slices.IndexFunc(lines, begins.MatchString)
	if at < 0 {
		at = max(0, len(lines)-3)
	}
	return lines[at:min(len(lines), at+3)]
}

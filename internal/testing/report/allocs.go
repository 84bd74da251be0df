package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A number may grow by the fraction growthLimit plus extraAllocs. The latter allows for the allocations of the benchmark
// itself, which are divided by the number of iterations.
const (
	growthLimit = 0.10
	extraAllocs = 0.5
)

var errWorse = errors.New("more allocations than the baseline")

// allocs compares the output of go test -bench with a file of lines "package benchmark allocations", or updates the file.
func allocs(file string, write bool, in io.Reader, out io.Writer) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	baseline, err := parseBaseline(string(raw))
	if err != nil {
		return err
	}
	got, err := read(io.TeeReader(in, out))
	if err != nil {
		return err
	}
	if write {
		for name := range baseline {
			if n, ok := got[name]; ok {
				baseline[name] = n
			}
		}
		return os.WriteFile(file, []byte(format(baseline)), 0o644)
	}
	return compare(baseline, got)
}

func compare(baseline, got map[string]float64) error {
	var worse []string
	for _, name := range slices.Sorted(maps.Keys(baseline)) {
		want := baseline[name]
		switch n, ok := got[name]; {
		case !ok:
			worse = append(worse, name+" was not run")
		case n > want*(1+growthLimit)+extraAllocs:
			worse = append(worse, fmt.Sprintf("%s: %s, baseline %s", name, number(n), number(want)))
		}
	}
	if len(worse) > 0 {
		return fmt.Errorf("%w:\n  %s", errWorse, strings.Join(worse, "\n  "))
	}
	return nil
}

var (
	// The number after the last hyphen is GOMAXPROCS.
	result = regexp.MustCompile(`^(Benchmark\S+?)(-\d+)?\s+\d+\s.*\s([0-9.]+) allocs/op`)
	failed = regexp.MustCompile(`^(FAIL|--- FAIL|panic:)`)
)

// read returns the allocations of each benchmark in the output of go test, by package and name.
func read(in io.Reader) (map[string]float64, error) {
	got, pkg := map[string]float64{}, ""
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := lines.Text()
		if name, ok := strings.CutPrefix(line, "pkg: "); ok {
			pkg = name
		}
		if failed.MatchString(line) {
			return nil, fmt.Errorf("a benchmark failed: %s", line)
		}
		m := result.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		n, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		got[pkg+" "+m[1]] = n
	}
	return got, lines.Err()
}

func parseBaseline(text string) (map[string]float64, error) {
	baseline := map[string]float64{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		if len(words) != 3 {
			return nil, fmt.Errorf("baseline: %q, want a package, a benchmark and a number", line)
		}
		n, err := strconv.ParseFloat(words[2], 64)
		if err != nil {
			return nil, fmt.Errorf("baseline: %q: %w", line, err)
		}
		baseline[words[0]+" "+words[1]] = n
	}
	if len(baseline) == 0 {
		return nil, errors.New("the baseline lists no benchmark")
	}
	return baseline, nil
}

func format(baseline map[string]float64) string {
	var b strings.Builder
	b.WriteString("# Allocations per operation. make bench-guard fails if a benchmark exceeds its number by more than 10 %.\n")
	for _, name := range slices.Sorted(maps.Keys(baseline)) {
		fmt.Fprintf(&b, "%s %s\n", name, number(baseline[name]))
	}
	return b.String()
}

func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

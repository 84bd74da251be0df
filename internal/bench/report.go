package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// report contains the measurements of a run.
type report struct {
	Machine machine   `json:"machine"`
	Broker  string    `json:"broker"`
	Flags   string    `json:"flags"`
	Results []*result `json:"results"`
}

// machine describes the machine of the run.
type machine struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPUs int    `json:"cpus"`
	CPU  string `json:"cpu,omitempty"`
	Go   string `json:"go"`
}

func newReport(broker string, args []string) *report {
	return &report{
		Machine: machine{
			OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), CPU: processorName(), Go: runtime.Version(),
		},
		Broker: broker, Flags: strings.Join(args, " "),
	}
}

func processorName() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	_, rest, ok := strings.Cut(string(text), "model name")
	if err != nil || !ok {
		return ""
	}
	line, _, _ := strings.Cut(rest, "\n")
	return strings.Trim(line, " \t:")
}

func (r *report) add(one *result) { r.Results = append(r.Results, one) }

// write prints the table and writes the file, if one is set.
func (r *report) write(out io.Writer, file string) error {
	if err := r.table(out); err != nil || file == "" {
		return err
	}
	raw, err := r.encode()
	if err != nil {
		return fmt.Errorf("bench: report: %w", err)
	}
	return os.WriteFile(file, raw, 0o644)
}

func (r *report) encode() ([]byte, error) {
	return json.Marshal(r, jsontext.WithIndent("  "), json.Deterministic(true))
}

func (r *report) table(out io.Writer) error {
	if len(r.Results) == 0 {
		return nil
	}
	m := r.Machine
	fmt.Fprintf(out, "%s; %d CPUs (%s), %s/%s, %s\n", r.Broker, m.CPUs, m.CPU, m.OS, m.Arch, m.Go)
	fmt.Fprintln(out, "latency in ms; CPU in seconds per 1,000 turns; resident memory in MB; log in KB a turn; by floor: "+
		"CPU, turns/s, p50 alone")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join([]string{
		"history", "tools", "parts", "sessions", "inst", "who", "turns/s", "p50", "p90", "p99", "max", "alone p50", "p99",
		"CPU", "driver", "broker", "peak", "end", "log", "repeats", "by floor",
	}, "\t"))
	for _, one := range r.Results {
		fmt.Fprintln(w, strings.Join(one.cells(), "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, one := range r.Results {
		if one.Recovered != nil {
			fmt.Fprintf(out, "%d stored sessions (%s): recovered in %.1f s, restarted with the store in %.1f s\n",
				one.Stored, one.Guarantee, *one.Recovered, *one.Restarted)
		}
	}
	return nil
}

func (r *result) cells() []string {
	who := r.Subject
	if r.Guarantee != "" {
		who += " " + r.Guarantee
	}
	alone50, alone99 := "-", "-"
	if r.Alone != nil {
		alone50, alone99 = decimal(r.Alone.P50), decimal(r.Alone.P99)
	}
	by := "-"
	if r.Ratio != nil {
		by = fmt.Sprintf("%.2f  %.2f  %.2f", r.Ratio.CPU, r.Ratio.PerSecond, r.Ratio.AloneP50)
	}
	return []string{
		strconv.Itoa(r.History), r.tools(), strconv.Itoa(r.Partitions), strconv.Itoa(r.Sessions),
		strconv.Itoa(r.Instances), who, fmt.Sprintf("%.0f", r.PerSecond),
		decimal(r.Load.P50), decimal(r.Load.P90), decimal(r.Load.P99), decimal(r.Load.Max), alone50, alone99,
		given(r.CPU), given(r.DriverCPU), given(r.BrokerCPU), megabytes(r.ResidentPeak), megabytes(r.Resident),
		kilo(r.Log), strconv.Itoa(r.Repeats), by,
	}
}

// tools returns the number of calls of a turn, per step if it has several steps.
func (r *result) tools() string {
	if r.Steps > 1 {
		return fmt.Sprintf("%d x %d", r.Steps, r.Tools)
	}
	return strconv.Itoa(r.Tools)
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }

func given(f *float64) string {
	if f == nil {
		return "-"
	}
	return strconv.FormatFloat(*f, 'f', 2, 64)
}

func kilo(f *float64) string {
	if f == nil {
		return "-"
	}
	return decimal(*f / 1024)
}

func megabytes(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n>>20, 10)
}

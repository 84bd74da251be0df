package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// usage is the CPU time and memory that a process has used so far. It is available on Linux only.
type usage struct {
	cpu            time.Duration
	resident, peak int64 // bytes
}

// ticks is the number of clock ticks per second in /proc (USER_HZ), which is 100 on every architecture that Go supports.
const ticks = 100

func usageOf(pid int) (usage, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return usage{}, fmt.Errorf("bench: no CPU time or memory of a process here: %w", err)
	}
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return usage{}, fmt.Errorf("bench: no memory of a process: %w", err)
	}
	// The name of the program, in parentheses, can contain any character.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return usage{}, fmt.Errorf("bench: %s/stat has %d fields", dir, len(fields))
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	if err1 != nil || err2 != nil {
		return usage{}, fmt.Errorf("bench: %s/stat has no CPU time", dir)
	}
	return usage{
		cpu:      time.Duration(user+system) * time.Second / ticks,
		resident: kilobytes(status, "VmRSS:"), peak: kilobytes(status, "VmHWM:"),
	}, nil
}

func kilobytes(status []byte, name string) int64 {
	_, rest, ok := bytes.Cut(status, []byte(name))
	fields := strings.Fields(string(rest[:max(0, bytes.IndexByte(rest, '\n'))]))
	if !ok || len(fields) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}

// usageOfAll returns the sum over all processes, or false if the system does not report it.
func usageOfAll(ps []*process) (usage, bool) {
	var all usage
	for _, p := range ps {
		u, err := usageOf(p.pid)
		if err != nil {
			return usage{}, false
		}
		all.cpu += u.cpu
		all.resident += u.resident
		all.peak += u.peak
	}
	return all, len(ps) > 0
}

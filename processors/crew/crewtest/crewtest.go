// Package crewtest has coding agents that speak ACP and do what a script says. Tests and examples run them where a user runs a
// real agent.
//
// The agent of this package is the calling binary itself, on the Go SDK of ACP: a TestMain or a main function calls Main first,
// and Command returns the command line with which the binary is an agent. InstallTypeScript installs the same agent on the
// TypeScript SDK, as another implementation of the protocol.
package crewtest

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	acp "github.com/coder/acp-go-sdk"
)

// Env is the environment variable that makes a binary that calls Main an agent. Its value is a script, or the path of one
// after "@". Command needs it not.
const Env = "TURNTABLE_CREWTEST_SCRIPT"

const (
	argument      = "crewtest-agent"
	forkedProcess = "crewtest-forked"
)

// Main returns at once unless the process was started as an agent, by Command or with Env. Then it is the agent and does not
// return. Call it before flags are parsed.
func Main() {
	switch {
	case len(os.Args) == 2 && os.Args[1] == forkedProcess:
		select {}
	case len(os.Args) == 3 && os.Args[1] == argument:
		exit(serve("@" + os.Args[2]))
	case os.Getenv(Env) != "":
		exit(serve(os.Getenv(Env)))
	}
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	os.Exit(0)
}

// serve is the agent until its standard input is closed.
func serve(from string) error {
	s, err := load(from)
	if err != nil {
		return err
	}
	if s.Stubborn {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil))) // the SDK logs to it
	a := &agent{
		script: s, out: &output{to: os.Stdout, piece: s.Piece}, connected: make(chan struct{}), life: context.Background(),
		sessions: map[string]*session{}, used: map[int]int{},
	}
	a.run(a.life, &session{}, s.Start)
	a.conn = acp.NewAgentSideConnection(a, a.out, os.Stdin)
	close(a.connected)
	<-a.conn.Done()
	if s.KeepAlive {
		select {}
	}
	return nil
}

func load(from string) (s Script, err error) {
	raw := []byte(from)
	if from[0] == '@' {
		if raw, err = os.ReadFile(from[1:]); err != nil {
			return s, fmt.Errorf("crewtest: %w", err)
		}
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, fmt.Errorf("crewtest: script: %w", err)
	}
	return s, nil
}

//go:embed agent.mjs package.json package-lock.json
var files embed.FS

// ErrNoNode is wrapped by the error of InstallTypeScript if node or npm is missing.
var ErrNoNode = errors.New("crewtest: needs node and npm")

// TypeScript is the installed agent on the TypeScript SDK of ACP, as another implementation of the protocol. It needs node of version 20
// or later, and npm to install the SDK once.
type TypeScript struct{ node, main string }

// InstallTypeScript installs the agent and its SDK, in the versions of package-lock.json and without scripts of packages, in a directory
// below dir that is used again. dir is the user's cache directory if it is empty. It may be called by several processes at
// once. It needs the npm registry the first time.
func InstallTypeScript(ctx context.Context, dir string) (*TypeScript, error) {
	node, noNode := exec.LookPath("node")
	npm, noNPM := exec.LookPath("npm")
	if noNode != nil || noNPM != nil {
		return nil, fmt.Errorf("%w: not on the PATH", ErrNoNode)
	}
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("crewtest: %w", err)
		}
		dir = filepath.Join(cache, "turntable")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("crewtest: %w", err)
	}
	digest := sha256.New()
	for _, name := range []string{"agent.mjs", "package.json", "package-lock.json"} {
		raw, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("crewtest: %w", err)
		}
		digest.Write(raw)
	}
	home := filepath.Join(dir, "tsagent-"+hex.EncodeToString(digest.Sum(nil)[:8]))
	a := &TypeScript{node: node, main: filepath.Join(home, "agent.mjs")}
	if _, err := os.Stat(home); err == nil {
		return a, nil
	}
	// The directory gets its name when it is complete.
	temp, err := os.MkdirTemp(dir, "tsagent-new-")
	if err != nil {
		return nil, fmt.Errorf("crewtest: %w", err)
	}
	defer func() { _ = os.RemoveAll(temp) }()
	if err := os.CopyFS(temp, files); err != nil {
		return nil, fmt.Errorf("crewtest: %w", err)
	}
	c := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	c.Dir = temp
	if out, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("crewtest: npm ci: %w: %s", err, out)
	}
	if err := os.Rename(temp, home); err != nil {
		if _, installed := os.Stat(home); installed == nil {
			return a, nil // by another process
		}
		return nil, fmt.Errorf("crewtest: %w", err)
	}
	return a, nil
}

// Command writes the script to a file in dir and returns the command line of an agent that does it. Piece has no effect.
func (a *TypeScript) Command(dir string, s Script) ([]string, error) {
	path, err := s.Save(dir)
	if err != nil {
		return nil, err
	}
	return []string{a.node, a.main, path}, nil
}

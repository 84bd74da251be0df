// Package crewtest has coding agents that speak ACP and do what a script says. Tests and examples run them where a user runs a
// real agent.
//
// The agent of this package is the calling binary itself, on the Go SDK of ACP: a TestMain or a main function calls Main first,
// and Command returns the command line with which the binary is an agent. InstallTypeScript installs the same agent on the
// TypeScript SDK, as another implementation of the protocol.
package crewtest

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
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
	a := newAgent(s, &output{to: os.Stdout, piece: s.Piece})
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

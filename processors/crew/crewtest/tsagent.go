package crewtest

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

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

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// scratch is a git repository that is removed with the directory of the play.
type scratch string

// newScratch creates a repository with one commit.
func newScratch(ctx context.Context, dir string) (scratch, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	s := scratch(filepath.Join(real, "repository"))
	if err := os.Mkdir(string(s), 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(string(s), "README"), []byte("A scratch repository.\n"), 0o644); err != nil {
		return "", err
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"},
		{"config", "user.name", "Crew"},
		{"config", "user.email", "crew@example.com"},
		{"config", "commit.gpgsign", "false"},
		{"add", "README"},
		{"commit", "-q", "-m", "Begin"},
	} {
		if _, err := s.git(ctx, args...); err != nil {
			return "", err
		}
	}
	return s, nil
}

func (s scratch) git(ctx context.Context, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "git", args...)
	c.Dir = string(s)
	for _, v := range os.Environ() { // a hook that runs this program has the variables of another repository
		if !strings.HasPrefix(v, "GIT_") {
			c.Env = append(c.Env, v)
		}
	}
	out, err := c.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}

// commit is a commit of the history.
type commit struct {
	subject, author string
	files           []string
}

// history returns the commits, oldest first.
func (s scratch) history(ctx context.Context) (commits []commit, err error) {
	const separator = "\x1e"
	out, err := s.git(ctx, "log", "--reverse", "--name-only", "--format="+separator+"%s%x1f%an")
	if err != nil {
		return nil, err
	}
	for entry := range strings.SplitSeq(out, separator) {
		lines := strings.Split(strings.TrimSpace(entry), "\n")
		subject, author, ok := strings.Cut(lines[0], "\x1f")
		if !ok {
			continue
		}
		c := commit{subject: subject, author: author}
		for _, f := range lines[1:] {
			if f != "" {
				c.files = append(c.files, f)
			}
		}
		commits = append(commits, c)
	}
	return commits, nil
}

package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// killLimit is how long the system may take to end a killed process.
const killLimit = 10 * time.Second

// Detach starts a cluster that outlives this process, or finds the one that an earlier Detach of this user started and
// nobody ended; there is one at most. It returns the addresses to bootstrap from, as Start does once all nodes answer.
// Options.Dir is not used: the data stands in the cache directory until EndDetached. A found cluster has to have the
// nodes and the port that are asked for, if they are, and all its nodes running.
func Detach(ctx context.Context, o Options) ([]string, error) {
	d, err := openDetached(ctx)
	if err != nil {
		return nil, err
	}
	defer d.close()
	if inUse(d.dir) {
		return d.match(o)
	}
	if err = os.RemoveAll(d.dir); err != nil {
		return nil, fmt.Errorf("kafkatest: %w", err)
	}
	o.Dir = d.dir
	c, err := start(ctx, o, true)
	if err != nil {
		return nil, err
	}
	return c.Bootstrap(), c.each((*node).release)
}

// EndDetached kills what Detach started and deletes its data; where there is nothing, it does nothing.
func EndDetached(ctx context.Context) error {
	d, err := openDetached(ctx)
	if err != nil {
		return err
	}
	defer d.close()
	for _, dir := range nodeDirs(d.dir) {
		if err = endHolder(ctx, dir); err != nil {
			return err
		}
	}
	if err = os.RemoveAll(d.dir); err != nil {
		return fmt.Errorf("kafkatest: %w", err)
	}
	return nil
}

// detached is the place of the detached cluster, locked against other starts and ends.
type detached struct {
	dir  string
	lock *flock.Flock
}

func openDetached(ctx context.Context) (*detached, error) {
	root, err := cacheDir()
	if err != nil {
		return nil, err
	}
	d := &detached{dir: filepath.Join(root, "detached")}
	d.lock = flock.New(d.dir + ".lock")
	if _, err = d.lock.TryLockContext(ctx, lockPoll); err != nil {
		return nil, fmt.Errorf("kafkatest: another start or stop is under way: %w", err)
	}
	return d, nil
}

func (d *detached) close() error { return d.lock.Close() }

// match is the running cluster's addresses, if it is what o asks for.
func (d *detached) match(o Options) ([]string, error) {
	dirs := nodeDirs(d.dir)
	if o.Nodes != 0 && o.Nodes != len(dirs) {
		return nil, fmt.Errorf("kafkatest: a cluster of %d nodes is running: stop it first", len(dirs))
	}
	addrs := make([]string, len(dirs))
	for i, dir := range dirs {
		node, err := readOwner(dir)
		if err != nil {
			return nil, err
		}
		if !held(dir) {
			return nil, fmt.Errorf("kafkatest: node %d of the running cluster: %w: stop it first", i+1, ErrDown)
		}
		if o.Port != 0 && o.Port+i != node.port {
			return nil, fmt.Errorf("kafkatest: a cluster is running on port %d: stop it first", node.port)
		}
		addrs[i] = (&port{number: node.port}).addr()
	}
	return addrs, nil
}

// endHolder kills the process that holds a node's directory and waits until it is gone.
func endHolder(ctx context.Context, dir string) error {
	if !held(dir) {
		return nil
	}
	o, err := readOwner(dir)
	if err != nil {
		return err
	}
	holder, err := os.FindProcess(o.pid)
	if err != nil {
		return fmt.Errorf("kafkatest: %w", err)
	}
	// Found first and seen holding then: it is the node, not a process that was given the id of a dead one.
	if !held(dir) {
		return nil
	}
	if err = holder.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kafkatest: end process %d: %w", o.pid, err)
	}
	ctx, cancel := context.WithTimeout(ctx, killLimit)
	defer cancel()
	poll := time.NewTicker(answerPoll)
	defer poll.Stop()
	for held(dir) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("kafkatest: process %d does not end: %w", o.pid, ctx.Err())
		case <-poll.C:
		}
	}
	return nil
}

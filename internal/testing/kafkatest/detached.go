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

// killLimit is how long killOwner waits for a killed process to exit.
const killLimit = 10 * time.Second

// Detach starts a cluster that outlives this process, or uses the running one that an earlier Detach of this user
// started; a user has at most one. It returns the bootstrap addresses when all nodes answer. Options.Dir is ignored: the
// data is in the cache directory until EndDetached. It returns an error if a running cluster has another number of nodes
// or another port than o requires, or a node that is down.
func Detach(ctx context.Context, o Options) ([]string, error) {
	d, err := openDetached(ctx)
	if err != nil {
		return nil, err
	}
	defer d.close()
	if inUse(d.dir) {
		return d.addresses(o)
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

// EndDetached kills the cluster that Detach started and deletes its data. Without such a cluster it does nothing.
func EndDetached(ctx context.Context) error {
	d, err := openDetached(ctx)
	if err != nil {
		return err
	}
	defer d.close()
	for _, dir := range nodeDirs(d.dir) {
		if err = killOwner(ctx, dir); err != nil {
			return err
		}
	}
	if err = os.RemoveAll(d.dir); err != nil {
		return fmt.Errorf("kafkatest: %w", err)
	}
	return nil
}

// detached is the directory of the detached cluster, locked against concurrent calls of Detach and EndDetached.
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
		return nil, fmt.Errorf("kafkatest: another start or stop is in progress: %w", err)
	}
	return d, nil
}

func (d *detached) close() error { return d.lock.Close() }

// addresses returns the addresses of the running cluster. It returns an error if the cluster does not match o.
func (d *detached) addresses(o Options) ([]string, error) {
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
		if !isLocked(dir) {
			return nil, fmt.Errorf("kafkatest: node %d of the running cluster: %w: stop it first", i+1, ErrDown)
		}
		if o.Port != 0 && o.Port+i != node.port {
			return nil, fmt.Errorf("kafkatest: a cluster is running on port %d: stop it first", node.port)
		}
		addrs[i] = (&port{number: node.port}).addr()
	}
	return addrs, nil
}

// killOwner kills the process that has locked a node's directory and waits until it has exited.
func killOwner(ctx context.Context, dir string) error {
	if !isLocked(dir) {
		return nil
	}
	o, err := readOwner(dir)
	if err != nil {
		return err
	}
	process, err := os.FindProcess(o.pid)
	if err != nil {
		return fmt.Errorf("kafkatest: %w", err)
	}
	// The directory is still locked after the process was found, so the process is the node and not another one that
	// reuses its ID.
	if !isLocked(dir) {
		return nil
	}
	if err = process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kafkatest: end process %d: %w", o.pid, err)
	}
	ctx, cancel := context.WithTimeout(ctx, killLimit)
	defer cancel()
	poll := time.NewTicker(answerPoll)
	defer poll.Stop()
	for isLocked(dir) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("kafkatest: process %d does not end: %w", o.pid, ctx.Err())
		case <-poll.C:
		}
	}
	return nil
}

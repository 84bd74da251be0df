package kafkatest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Options configures Start. The zero value starts one node on a free port in a new temporary directory.
type Options struct {
	// Nodes is 1 or 3; 0 means 1. With three, every topic has three replicas unless it is created with fewer, and a
	// record that was acknowledged with acks=all is on two.
	Nodes int
	// Dir is the directory of the cluster's data. A later Start with the same number of nodes uses the data again. It is
	// created if missing. Only one cluster can use it at a time: see ErrInUse. If it is empty, Close deletes the data.
	Dir string
	// Port is the port of the first node; the others have the ports after it. 0 chooses free ports.
	Port int
	// Version is the version of Apache Kafka, such as BeforeShareGroups. If empty, it is that of the environment variable
	// EnvVersion or, without one, Version.
	Version string
	// OAuth adds a listener that authenticates clients by SASL OAUTHBEARER: see Cluster.OAuthBootstrap.
	OAuth bool
	// Optimized lets the JVM optimize hot code. That costs a third more processor time in the first minutes, and pays in benchmarks.
	Optimized bool
	// Properties are added to each node's server.properties and override those of this package.
	Properties map[string]string
}

// Cluster is a running Kafka. Its nodes are numbered from 1, which is also their broker id. Its methods are safe for
// concurrent use.
type Cluster struct {
	nodes []*node
	close func() error
}

// Start starts a cluster and returns when every node answers and knows all others. The context bounds only the start; the
// caller closes the cluster. The first start on a machine fetches the jars, which can take minutes; see Fetch.
//
// The error wraps ErrJava or ErrJars if these are missing, and ErrInUse if another cluster uses Dir.
func Start(ctx context.Context, o Options) (*Cluster, error) { return start(ctx, o, false) }

func start(ctx context.Context, o Options, detached bool) (*Cluster, error) {
	count := o.Nodes
	if count == 0 {
		count = 1
	}
	if count != 1 && count != 3 {
		return nil, fmt.Errorf("kafkatest: a cluster has 1 or 3 nodes, not %d", o.Nodes)
	}
	java, err := findJava(ctx)
	if err != nil {
		return nil, err
	}
	jars, err := Fetch(ctx, cmp.Or(o.Version, os.Getenv(EnvVersion)))
	if err != nil {
		return nil, err
	}
	dir := o.Dir
	if dir == "" {
		if dir, err = newDir(); err != nil {
			return nil, err
		}
	}
	c := &Cluster{}
	c.close = sync.OnceValue(func() error {
		err := c.each((*node).close)
		if o.Dir == "" {
			err = errors.Join(err, os.RemoveAll(dir))
		}
		return err
	})
	if err = c.startNodes(ctx, o, dir, count, func(n *node) { n.java, n.jars, n.detached = java, jars, detached }); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// startNodes creates the nodes, starts them and waits until they are ready.
func (c *Cluster) startNodes(ctx context.Context, o Options, dir string, count int, equip func(*node)) error {
	if existing := len(nodeDirs(dir)); existing != 0 && existing != count {
		return fmt.Errorf("kafkatest: %s is a cluster of %d nodes, not %d", dir, existing, count)
	}
	// All directories are created before the first node starts: a later start counts the nodes by them.
	for id := 1; id <= count; id++ {
		if err := os.MkdirAll(nodeDir(dir, id), 0o755); err != nil {
			return fmt.Errorf("kafkatest: %w", err)
		}
	}
	for id := 1; id <= count; id++ {
		n := &node{id: id, dir: nodeDir(dir, id), optimized: o.Optimized}
		equip(n)
		var err error
		if n.lock, err = lockDir(n.dir); err != nil {
			return err
		}
		c.nodes = append(c.nodes, n)
		if n.port, err = o.port(id); err != nil {
			return err
		}
		if n.controller, err = reservePort(); err != nil {
			return err
		}
		if o.OAuth {
			if n.oauth, err = reservePort(); err != nil {
				return err
			}
		}
	}
	id, err := clusterID(dir)
	if err != nil {
		return err
	}
	err = c.concurrently(ctx, func(ctx context.Context, n *node) error {
		return n.prepare(ctx, id, properties(n, c.nodes, o.Properties))
	})
	if err != nil {
		return err
	}
	if err = c.each((*node).start); err != nil {
		return err
	}
	return c.concurrently(ctx, func(ctx context.Context, n *node) error { return n.waitUntilReady(ctx, c.nodes) })
}

func (o Options) port(id int) (*port, error) {
	if o.Port == 0 {
		return reservePort()
	}
	return reserveNumber(o.Port + id - 1)
}

// Bootstrap returns the addresses, host:port, of all nodes, running or not.
func (c *Cluster) Bootstrap() []string {
	addrs := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		addrs[i] = n.port.addr()
	}
	return addrs
}

// OAuthBootstrap returns the addresses of the listeners of Options.OAuth. They are not encrypted, and accept every unsigned
// JSON Web Token that has the claims sub, iat and exp and has not expired.
func (c *Cluster) OAuthBootstrap() []string {
	addrs := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		addrs[i] = n.oauth.addr()
	}
	return addrs
}

// Kill ends a node with SIGKILL and returns when it has ended.
func (c *Cluster) Kill(id int) error { return c.with(id, (*node).kill) }

// Stop ends a node, even a paused one, with SIGTERM and returns when it has ended. The node first moves its leaders to
// other nodes. If the context ends earlier, the node may still be stopping.
func (c *Cluster) Stop(ctx context.Context, id int) error {
	return c.with(id, func(n *node) error { return n.stop(ctx) })
}

// Restart starts a killed or stopped node with its data and port, and returns when it answers and has rejoined the
// cluster. A running node is stopped first. Its replicas may still be catching up: see InSync.
func (c *Cluster) Restart(ctx context.Context, id int) error {
	return c.with(id, func(n *node) error {
		if err := n.stop(ctx); err != nil && !errors.Is(err, ErrDown) {
			return err
		}
		if err := n.start(); err != nil {
			return err
		}
		return n.waitUntilReady(ctx, []*node{n})
	})
}

// Pause freezes a node with SIGSTOP: its connections stay open, but it does not answer.
func (c *Cluster) Pause(id int) error { return c.with(id, (*node).pause) }

// Resume continues a paused node.
func (c *Cluster) Resume(id int) error { return c.with(id, (*node).resume) }

// Log returns the last lines that a node printed, its warnings and errors, for the output of a failed test.
func (c *Cluster) Log(id int) string {
	var text string
	if err := c.with(id, func(n *node) error { text = n.log(); return nil }); err != nil {
		return err.Error()
	}
	return text
}

// Close kills all nodes, and deletes the data unless it is in Options.Dir. To shut nodes down cleanly, stop
// them before. Close clients first, or they keep reconnecting. Further calls return the first result.
func (c *Cluster) Close() error { return c.close() }

func (c *Cluster) with(id int, f func(*node) error) error {
	if id < 1 || id > len(c.nodes) {
		return fmt.Errorf("kafkatest: no node %d in a cluster of %d", id, len(c.nodes))
	}
	return f(c.nodes[id-1])
}

// each calls f for all nodes, even if it fails for one.
func (c *Cluster) each(f func(*node) error) error {
	errs := make([]error, len(c.nodes))
	for i, n := range c.nodes {
		errs[i] = f(n)
	}
	return errors.Join(errs...)
}

// concurrently calls f for all nodes concurrently and returns the first error, which cancels the context of the others.
func (c *Cluster) concurrently(ctx context.Context, f func(context.Context, *node) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, n := range c.nodes {
		group.Go(func() error { return f(ctx, n) })
	}
	return group.Wait()
}

// Hostile measures how long the doors take to answer honest clients beside hostile connections. It serves a door in a
// process of its own and measures 50 honest clients, alternately alone and beside 1,000 hostile connections on loopback, which
// another process opens again when the door closes them. It prints a table and fails if an honest request failed, the door used 256 MB, or goroutines remain.
//
//	go run ./internal/bench/hostile -rounds 4
//
// It needs no Kafka: records are acknowledged after 5 ms. The doors that read topics read those of a broker in this process.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/processors/embedded"
)

func main() {
	child := flag.String("serve", "", "serve a door (used by the program itself)")
	attacker := flag.String("attack", "", "attack a door at the address in the argument (used by the program itself)")
	s := settings{}
	flag.IntVar(&s.hostile, "hostile", 1000, "hostile connections")
	flag.IntVar(&s.honest, "honest", 50, "honest clients")
	flag.DurationVar(&s.duration, "for", 5*time.Second, "how long to measure in each round, quiet and attacked")
	flag.IntVar(&s.rounds, "rounds", 4, "how often to measure, quiet and attacked alternately")
	flag.StringVar(&s.doors, "doors", strings.Join(all, ","), "doors to measure, separated by commas")
	brokers := flag.String("brokers", "", "brokers of the doors that need some (used by the program itself)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case *child != "":
		err = serve(*child, brokersOf(*brokers))
	case *attacker != "":
		attackAll(untilEOF(ctx, os.Stdin), *attacker, flag.Arg(0), s.hostile)
	default:
		err = runAll(ctx, s, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
}

type settings struct {
	hostile, honest, rounds int
	duration                time.Duration
	doors                   string
}

// memoryLimit is the memory that a door may use, in bytes.
const memoryLimit = 256 << 20

func runAll(ctx context.Context, s settings, out io.Writer) error {
	fmt.Fprintf(out, "%d hostile connections beside %d honest clients, %d rounds of %s each\n\n", s.hostile, s.honest, s.rounds, s.duration)
	fmt.Fprintln(out, "| door | quiet p50 / p99 | attacked p50 / p99 | p99 ratio | honest requests, failed | peak memory | goroutines before, after |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|")
	var errs []error
	for door := range strings.SplitSeq(s.doors, ",") {
		if err := run(ctx, s, door, out); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", door, err))
		}
	}
	return errors.Join(errs...)
}

// run measures one door.
func run(ctx context.Context, s settings, door string, out io.Writer) (err error) {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	secret := newSecret()
	args := []string{"-serve", door}
	if needsBroker(door) {
		broker, err := embedded.Start(embedded.Config{})
		if err != nil {
			return err
		}
		defer func() { _ = broker.Close() }()
		if err := createTopics(ctx, broker.Addrs()); err != nil {
			return err
		}
		args = append(args, "-brokers", strings.Join(broker.Addrs(), ","))
	}
	child := exec.CommandContext(ctx, program, args...)
	child.Env, child.Stderr = append(os.Environ(), secretVariable+"="+secret), os.Stderr
	stdin, err := child.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := child.StdoutPipe()
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stdin.Close(), child.Wait()) }()
	var address, stats string
	if _, err := fmt.Fscan(bufio.NewReader(stdout), &address, &stats); err != nil {
		return err
	}
	_ = measure(ctx, door, address, secret, s.honest, time.Second) // warm up
	_, before, err := settled(ctx, stats, 0)
	if err != nil {
		return err
	}
	var quiet, attacked sample
	for range s.rounds {
		quiet.add(measure(ctx, door, address, secret, s.honest, s.duration))
		stop, err := startAttack(ctx, program, door, address, s.hostile)
		if err != nil {
			return err
		}
		_ = measure(ctx, door, address, secret, s.honest, s.duration/4) // until all are connected
		attacked.add(measure(ctx, door, address, secret, s.honest, s.duration))
		if err := stop(); err != nil {
			return err
		}
	}
	peak, after, err := settled(ctx, stats, before)
	if err != nil {
		return err
	}
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }
	fmt.Fprintf(out, "| %s | %s / %s ms | %s / %s ms | %.1f | %d, %d | %d MB | %d, %d |\n", door,
		ms(quiet.quantile(0.5)), ms(quiet.quantile(0.99)), ms(attacked.quantile(0.5)), ms(attacked.quantile(0.99)),
		float64(attacked.quantile(0.99))/float64(max(quiet.quantile(0.99), 1)),
		len(quiet.latencies)+len(attacked.latencies), quiet.failed+attacked.failed, peak>>20, before, after)
	switch {
	case quiet.failed+attacked.failed > 0:
		return fmt.Errorf("%d honest requests failed, one with: %w", quiet.failed+attacked.failed, errors.Join(quiet.first, attacked.first))
	case peak >= memoryLimit:
		return fmt.Errorf("the door used %d MB", peak>>20)
	case after > before:
		return fmt.Errorf("%d goroutines remain", after-before)
	}
	return nil
}

// startAttack starts the hostile clients in a process of low priority: they stand for other machines, which do not use the
// processors of the door. stop ends them and waits for that.
func startAttack(ctx context.Context, program, door, address string, n int) (stop func() error, err error) {
	args := []string{program, "-attack", door, "-hostile", strconv.Itoa(n), address}
	if nice, err := exec.LookPath("nice"); err == nil {
		args = append([]string{nice, "-n", "19"}, args...)
	}
	attackers := exec.CommandContext(ctx, args[0], args[1:]...)
	attackers.Stderr = os.Stderr
	stdin, err := attackers.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := attackers.Start(); err != nil {
		return nil, err
	}
	return func() error { return errors.Join(stdin.Close(), attackers.Wait()) }, nil
}

// untilEOF returns a context that ends at the end of in.
func untilEOF(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, in)
	}()
	return ctx
}

// settleTimeout is longer than any of the door's timeouts.
const settleTimeout = 90 * time.Second

// settled returns the peak of the memory, and the goroutines once they are at most so many, or after some time. With 0 it
// waits until their number does not change.
func settled(ctx context.Context, stats string, want int) (peak uint64, goroutines int, err error) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	until := time.Now().Add(settleTimeout)
	for last, same := -1, 0; ; last = goroutines {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+stats, nil)
		if err != nil {
			return 0, 0, err
		}
		answer, err := client.Do(r)
		if err != nil {
			return 0, 0, err
		}
		_, err = fmt.Fscan(answer.Body, &peak, &goroutines)
		if err = errors.Join(err, answer.Body.Close()); err != nil {
			return 0, 0, err
		}
		if same++; goroutines != last {
			same = 0
		}
		switch {
		case time.Now().After(until), want > 0 && goroutines <= want, want == 0 && same >= 10:
			return peak, goroutines, nil
		}
		time.Sleep(200 * time.Millisecond)
	}
}

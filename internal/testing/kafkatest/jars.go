package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// ErrJars is wrapped by the error of a start that cannot fetch the jars of Apache Kafka.
var ErrJars = errors.New("kafkatest: no Apache Kafka to start")

const lockPoll = 100 * time.Millisecond

// Fetch fetches the jars of a version, or of the default one if it is empty, into the cache directory, unless they are there,
// and returns their directory. Processes may call it concurrently: one runs Maven, the others wait for it until their context
// ends. An interrupted fetch leaves no incomplete set of jars.
func Fetch(ctx context.Context, version string) (string, error) {
	if version == "" {
		version = Version()
	}
	root, err := cacheDir()
	if err != nil {
		return "", err
	}
	jars := filepath.Join(root, jarsKey(version))
	if complete(jars, version) {
		return jars, nil
	}
	lock := flock.New(jars + ".lock")
	if _, err = lock.TryLockContext(ctx, lockPoll); err != nil {
		return "", fmt.Errorf("%w: another process is fetching it: %w", ErrJars, err)
	}
	defer lock.Close()
	if complete(jars, version) {
		return jars, nil
	}
	if err = fetchTo(ctx, root, jars, version); err != nil {
		return "", fmt.Errorf("%w: %w", ErrJars, err)
	}
	return jars, nil
}

// cacheDir returns the directory of files that outlive a test binary: jars, port locks and the detached cluster.
func cacheDir() (string, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("kafkatest: %w", err)
	}
	root := filepath.Join(user, "turntable-kafka")
	if err = os.MkdirAll(root, 0o755); err != nil {
		return "", fmt.Errorf("kafkatest: %w", err)
	}
	return root, nil
}

func complete(jars, version string) bool {
	_, err := os.Stat(filepath.Join(jars, "kafka_2.13-"+version+".jar"))
	return err == nil
}

// fetchTo lets Maven copy the jars to a temporary directory and then renames it to jars.
func fetchTo(ctx context.Context, root, jars, version string) error {
	maven, err := exec.LookPath("mvn")
	if err != nil {
		return fmt.Errorf("mvn is needed to fetch them the first time: %w", err)
	}
	temporary, err := os.MkdirTemp(root, "fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	project := filepath.Join(temporary, "pom.xml")
	if err = os.WriteFile(project, pom, 0o644); err != nil {
		return err
	}
	lib := filepath.Join(temporary, "lib")
	cmd := exec.CommandContext(ctx, maven, "--quiet", "--batch-mode", "--no-transfer-progress", "--file", project,
		"dependency:copy-dependencies", "-Dkafka.version="+version, "-DincludeScope=runtime", "-DoutputDirectory="+lib)
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mvn dependency:copy-dependencies: %w: %s", errors.Join(err, ctx.Err()), lastLines(out, 12))
	}
	if !complete(lib, version) {
		return fmt.Errorf("mvn dependency:copy-dependencies did not copy kafka_2.13-%s.jar", version)
	}
	// A directory without the broker's jar is incomplete.
	if err = os.RemoveAll(jars); err != nil {
		return err
	}
	return os.Rename(lib, jars)
}

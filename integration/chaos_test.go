//go:build unix

package integration_test

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/postburner/postburner/broker/brokertest"
	"github.com/postburner/postburner/internal/testwait"
)

// chaosForm is how much of it there is.
type chaosForm struct {
	jobs     int           // acknowledged ones
	lasts    time.Duration // the clients spread their puts over it, and faults go on for as long
	drainsBy time.Duration // the tube is empty after the last fault within
}

const (
	chaosSeedVariable = "POSTBURNER_CHAOS_SEED"
	chaosFormVariable = "POSTBURNER_CHAOS" // full: the long form
	chaosClients      = 2
	chaosWorkers      = 2
	chaosForks        = 2
	chaosThreads      = 4
	chaosTTR          = 10 // seconds, longer than any fault lasts
)

// chaosFault is one fault: when it was, and whom it can make lose a lease or a reply.
type chaosFault struct {
	name        string
	from, until time.Time
	everyone    bool           // it concerns every connection
	worker      *workerProcess // it concerns this worker's children
	pid         int            // only this child of it; 0: all
	detail      string
}

// chaos is one run.
type chaos struct {
	t       *testing.T
	form    chaosForm
	rng     *rand.Rand // of the schedule: only the test's goroutine uses it
	server  *brokertest.Beanstalkd
	proxy   *faultProxy
	workers []*workerProcess // that run
	ever    []*workerProcess // also those that have ended
	faults  []*chaosFault
	after   []func()     // ends what lasts beyond its fault
	stopped map[int]bool // workers' children that are stopped now
	disk    string       // of the binlog, if it may be filled; "": it may not
	began   time.Time
}

func TestChaos(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(chaosSeedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", chaosSeedVariable, err)
		}
	}
	form, prefix := chaosForm{jobs: 3000, lasts: 45 * time.Second, drainsBy: 90 * time.Second}, ""
	if os.Getenv(chaosFormVariable) == "full" {
		form, prefix = chaosForm{jobs: 20_000, lasts: 5 * time.Minute, drainsBy: 4 * time.Minute}, chaosFormVariable+"=full "
	}
	replay := fmt.Sprintf("%s%s=%d go test -race -timeout 30m -run '^TestChaos$' ./integration", prefix, chaosSeedVariable, seed)
	t.Logf("seed %d; the same schedule again: %s", seed, replay)
	_ = exec.Command("true").Run() // what the runtime opens once, for processes and for connections, is not counted
	warm := startFaultProxy(t, "127.0.0.1:1")
	warm.close()
	before := openFiles(t, os.Getpid())

	c := &chaos{t: t, form: form, rng: rand.New(rand.NewPCG(seed, 0)), stopped: map[int]bool{}, began: time.Now()}
	t.Cleanup(func() { // after those of all that is started below, which log what they know
		if t.Failed() {
			t.Logf("the same schedule again: %s", replay)
		}
	})
	c.run(seed)
	testwait.Until(t, func() (bool, string) {
		after := openFiles(t, os.Getpid())
		return after <= before, fmt.Sprintf("%d descriptors are open in the test, %d before", after, before)
	})
}

func (c *chaos) run(seed uint64) {
	binlog := c.t.TempDir()
	c.mountDisk(binlog)
	c.server = brokertest.StartBeanstalkd(c.t, "-b", binlog, "-s", "65536")
	c.proxy = startFaultProxy(c.t, c.server.Addr())
	for range chaosWorkers {
		c.workers = append(c.workers, c.startWorker())
	}
	c.eachReady()

	clients := make([]*chaosClient, chaosClients)
	var numbers atomic.Int64
	var putting sync.WaitGroup
	over := make(chan struct{})
	for i := range clients {
		clients[i] = &chaosClient{addr: c.server.Addr(), numbers: &numbers, rng: rand.New(rand.NewPCG(seed, uint64(i+1)))}
		putting.Go(func() { clients[i].putAll(c.form.jobs/chaosClients, c.form.lasts*9/10, over) })
	}
	defer putting.Wait()
	defer close(over)
	defer c.report()

	for time.Since(c.began) < c.form.lasts {
		for _, f := range c.deck() {
			c.pause(0, 1500*time.Millisecond)
			c.strike(f)
			if time.Since(c.began) >= c.form.lasts {
				break
			}
		}
	}
	c.end()
	c.t.Logf("%d faults in %v; from here on there are none", len(c.faults), time.Since(c.began).Round(time.Second))
	done := make(chan struct{})
	go func() { putting.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(testwait.Patience):
		c.t.Fatalf("the clients have not put all their jobs within %v of the last fault", testwait.Patience)
	}
	c.drain()
	for _, w := range c.workers {
		w.stop()
	}
	v := &chaosVerdict{chaos: c, clients: clients}
	v.judge()
	c.proxy.close()
	c.server.Kill()
	v.nothingIsLeft()
}

// mountDisk gives the binlog a disk of its own, small enough to be filled.
func (c *chaos) mountDisk(dir string) {
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", dir).CombinedOutput(); err != nil {
		c.t.Logf("NOT TESTED: a full disk of the binlog, since no tmpfs can be mounted: %v: %s", err, out)
		return
	}
	c.disk = dir
	c.t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			c.t.Errorf("unmount the disk of the binlog: %v: %s", err, out)
		}
	})
}

func (c *chaos) startWorker() *workerProcess {
	w := startWorker(c.t, workerOptions{
		URL: c.proxy.url(), Forks: chaosForks, Threads: chaosThreads, Top: "log: {format: json}",
		Keys: "timeout: 1\nshutdown_timeout: 20\nliveness_timeout: 5",
	})
	c.ever = append(c.ever, w)
	return w
}

// eachReady waits until each worker has consumed once.
func (c *chaos) eachReady() {
	c.t.Helper()
	for _, w := range c.workers {
		testwait.Until(c.t, func() (bool, string) {
			return w.log.Contains("child is ready"), "no child of a worker is ready"
		})
	}
}

// chaosKind is one kind of fault.
type chaosKind struct {
	name   string
	strike func(*chaos, *chaosFault)
}

var chaosKinds = []chaosKind{
	{"kill a child", (*chaos).killChild},
	{"kill a parent", (*chaos).killParent},
	{"stop a child for a while", (*chaos).stopChild},
	{"stop a child for good", (*chaos).freezeChild},
	{"rolling restart", (*chaos).restart},
	{"quiet", (*chaos).quiet},
	{"stop a worker", (*chaos).stopWorker},
	{"kill beanstalkd", (*chaos).killServer},
	{"drain beanstalkd", (*chaos).drainServer},
	{"cut", (*chaos).cut},
	{"stall", (*chaos).stall},
	{"slow", (*chaos).slow},
	{"full disk", (*chaos).fillDisk},
}

// deck is every kind once, shuffled, so that none is left out for long.
func (c *chaos) deck() []chaosKind {
	deck := append([]chaosKind(nil), chaosKinds...)
	c.rng.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	return deck
}

// strike carries out one fault, and then ends what earlier ones have left on.
func (c *chaos) strike(kind chaosKind) {
	earlier := c.after
	c.after = nil
	f := &chaosFault{name: kind.name, from: time.Now()}
	c.faults = append(c.faults, f)
	kind.strike(c, f)
	if f.until.IsZero() {
		f.until = time.Now()
	}
	for _, end := range earlier {
		end()
	}
}

// end ends every fault that is still on.
func (c *chaos) end() {
	for _, end := range c.after {
		end()
	}
	c.after = nil
}

// pause lets a random time pass, which is the schedule itself and waits for nothing.
func (c *chaos) pause(least, most time.Duration) {
	<-time.After(least + time.Duration(c.rng.Int64N(int64(most-least))))
}

// child picks a living child that is not stopped; 0 if there is none.
func (c *chaos) child() (*workerProcess, int) {
	w := c.workers[c.rng.IntN(len(c.workers))]
	draw := c.rng.IntN(1 << 20)
	var pids []int
	for _, pid := range w.children() {
		if !c.stopped[pid] {
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 {
		return w, 0
	}
	return w, pids[draw%len(pids)]
}

func (c *chaos) killChild(f *chaosFault) {
	w, pid := c.child()
	if pid == 0 {
		f.detail = "there was none"
		return
	}
	f.worker, f.pid, f.detail = w, pid, fmt.Sprint("pid ", pid)
	_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended just now
}

func (c *chaos) killParent(f *chaosFault) {
	i := c.rng.IntN(len(c.workers))
	w := c.workers[i]
	f.worker, f.detail = w, fmt.Sprint("pid ", w.pid())
	children := w.children()
	w.signal(syscall.SIGKILL)
	<-w.exited
	for pid := range c.stopped { // it would never see that its parent is gone
		c.wake(pid)
	}
	gone(c.t, children)
	f.until = time.Now()
	c.workers[i] = c.startWorker()
	c.eachReady()
}

// stopChild stops a child until after the next fault.
func (c *chaos) stopChild(f *chaosFault) {
	if pid := c.freeze(f); pid != 0 {
		c.pause(100*time.Millisecond, 2*time.Second)
		c.after = append(c.after, func() {
			c.wake(pid)
			f.until = time.Now()
		})
	}
}

// freezeChild leaves a stopped child to the liveness timeout.
func (c *chaos) freezeChild(f *chaosFault) {
	if pid := c.freeze(f); pid != 0 {
		gone(c.t, []int{pid})
		delete(c.stopped, pid)
	}
}

func (c *chaos) freeze(f *chaosFault) (pid int) {
	w, pid := c.child()
	if pid == 0 {
		f.detail = "there was none"
		return 0
	}
	f.worker, f.pid, f.detail = w, pid, fmt.Sprint("pid ", pid)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return 0 // it has ended just now
	}
	c.stopped[pid] = true
	return pid
}

// wake continues a stopped child, unless its worker has killed and reaped it meanwhile.
func (c *chaos) wake(pid int) {
	if c.stopped[pid] {
		_ = syscall.Kill(pid, syscall.SIGCONT)
		delete(c.stopped, pid)
	}
}

func (c *chaos) restart(f *chaosFault) {
	w := c.workers[c.rng.IntN(len(c.workers))]
	f.detail = fmt.Sprint("pid ", w.pid())
	w.signal(syscall.SIGUSR1)
	c.pause(0, 2*time.Second) // the next fault may hit it half way
}

// replaceWorker asks a worker to end, and starts another.
func (c *chaos) replaceWorker(i int, f *chaosFault) {
	w := c.workers[i]
	f.detail = fmt.Sprint("pid ", w.pid())
	w.signal(syscall.SIGTERM)
	if code := w.wait(); code != 0 {
		c.t.Errorf("after TERM worker %d exited with %d, want 0", w.pid(), code)
	}
	c.workers[i] = c.startWorker()
	c.eachReady()
}

// quiet is never undone: a quiet worker is stopped and another started.
func (c *chaos) quiet(f *chaosFault) {
	i := c.rng.IntN(len(c.workers))
	c.workers[i].signal(syscall.SIGTSTP)
	c.pause(100*time.Millisecond, 1500*time.Millisecond)
	c.replaceWorker(i, f)
}

func (c *chaos) stopWorker(f *chaosFault) { c.replaceWorker(c.rng.IntN(len(c.workers)), f) }

func (c *chaos) restartServer(f *chaosFault) {
	f.everyone, f.from = true, time.Now()
	c.server.Kill()
	c.pause(0, 1500*time.Millisecond)
	c.server.Restart()
}

func (c *chaos) killServer(f *chaosFault) { c.restartServer(f) }

// drainServer ends with a restart, since beanstalkd cannot leave its drain mode.
func (c *chaos) drainServer(f *chaosFault) {
	c.server.Signal(syscall.SIGUSR1)
	c.pause(500*time.Millisecond, 2*time.Second)
	c.restartServer(f)
}

func (c *chaos) cut(f *chaosFault) {
	f.everyone = true
	c.proxy.cut()
}

// stall lasts for less than a TTR and than any deadline of a command, so that it must lose nothing.
func (c *chaos) stall(*chaosFault) {
	resume := c.proxy.stall()
	c.pause(200*time.Millisecond, 4*time.Second)
	resume()
}

// slow stays on until after the next fault. It must lose nothing either.
func (c *chaos) slow(f *chaosFault) {
	c.proxy.slow(time.Duration(5+c.rng.IntN(150)) * time.Millisecond)
	c.pause(200*time.Millisecond, 2*time.Second)
	c.after = append(c.after, func() {
		c.proxy.slow(0)
		f.until = time.Now()
	})
}

// fillDisk leaves the binlog no room, and ends with a restart, which gives back what the
// server could not store.
func (c *chaos) fillDisk(f *chaosFault) {
	if c.disk == "" {
		f.detail = "NOT TESTED: no tmpfs"
		return
	}
	ballast := filepath.Join(c.disk, "ballast")
	file, err := os.Create(ballast)
	if err != nil {
		c.t.Fatal(err)
	}
	block := make([]byte, 4096)
	for err == nil {
		_, err = file.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		c.t.Fatalf("fill the disk of the binlog: %v", err)
	}
	_ = file.Close() // what it holds is of no interest
	c.pause(time.Second, 4*time.Second)
	if err := os.Remove(ballast); err != nil {
		c.t.Fatal(err)
	}
	c.restartServer(f)
}

// drain waits until only buried jobs are left.
func (c *chaos) drain() {
	raw := dialRaw(c.t, c.server.Addr())
	defer func() { _ = raw.conn.Close() }() // only asked
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(c.form.drainsBy); ; <-tick.C {
		left := raw.jobs(tube) - raw.count(tube, "current-jobs-buried")
		if left == 0 {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%d jobs are left %v after the last fault: %v", left, c.form.drainsBy, raw.stats("stats-tube %s", tube))
		}
	}
}

// report logs the faults.
func (c *chaos) report() {
	for _, f := range c.faults {
		c.t.Logf("fault: %s", f)
	}
}

func (f *chaosFault) String() string {
	return fmt.Sprintf("%s–%s %s %s", f.from.Format("15:04:05.000"), f.until.Format("15:04:05.000"), f.name, f.detail)
}

// chaosClient puts numbered jobs directly, as a service of its own would.
type chaosClient struct {
	addr    string
	numbers *atomic.Int64
	rng     *rand.Rand

	acknowledged []int // numbers that the server said INSERTED to
	unknown      []int // numbers whose reply was lost
	refused      map[string]int

	conn net.Conn
	r    *bufio.Reader
}

// putAll puts jobs until so many are acknowledged, evenly over a time, or until over is closed.
func (c *chaosClient) putAll(jobs int, spread time.Duration, over <-chan struct{}) {
	c.refused = map[string]int{}
	defer c.hangUp()
	tick := time.NewTicker(max(time.Millisecond, spread/time.Duration(jobs)))
	defer tick.Stop()
	n := 0 // to be put again since it was refused; 0: none
	for len(c.acknowledged) < jobs {
		select {
		case <-tick.C:
		case <-over:
			return
		}
		if n == 0 {
			n = int(c.numbers.Add(1))
		}
		reply, sent, err := c.put(n)
		switch {
		case err != nil && sent:
			c.unknown = append(c.unknown, n)
			n = 0
			c.hangUp()
		case err != nil:
			c.hangUp()
		case strings.HasPrefix(reply, "INSERTED "):
			c.acknowledged = append(c.acknowledged, n)
			n = 0
		default: // DRAINING, or OUT_OF_MEMORY, which may leave the job in memory until the restart
			c.refused[reply]++
			if reply != "DRAINING" {
				c.unknown = append(c.unknown, n)
				n = 0
			}
		}
	}
}

// put puts one job. sent says whether the server may have got it.
func (c *chaosClient) put(n int) (reply string, sent bool, err error) {
	if c.conn == nil {
		if c.conn, err = net.DialTimeout("tcp", c.addr, 5*time.Second); err != nil {
			c.conn = nil
			return "", false, err
		}
		c.r = bufio.NewReader(c.conn)
		if reply, err = c.say("use " + tube + "\r\n"); err != nil || reply != "USING "+tube {
			return "", false, fmt.Errorf("use answered %q: %w", reply, errors.Join(err, net.ErrClosed))
		}
	}
	body := activeJob("nap", n, fmt.Sprintf(`,"millis":%d`, 1+c.rng.IntN(40)))
	reply, err = c.say(fmt.Sprintf("put 1000 0 %d %d\r\n%s\r\n", chaosTTR, len(body), body))
	return reply, true, err
}

func (c *chaosClient) say(text string) (string, error) {
	if err := c.conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := c.conn.Write([]byte(text)); err != nil {
		return "", err
	}
	line, err := c.r.ReadString('\n')
	return strings.TrimSuffix(line, "\r\n"), err
}

func (c *chaosClient) hangUp() {
	if c.conn != nil {
		_ = c.conn.Close() // it is of no use any more
		c.conn = nil
	}
}

// Package swarm keeps child processes alive. A [Swarm], in the parent, starts a child
// for each of its slots, listens to them, replaces those that end or should end, and
// stops them; a [Child], in the child process, is the other end of that. The package
// knows nothing of jobs.
//
// Three files are inherited by each child. The guard pipe carries its configuration and then
// commands, one a line; its end of file says that the parent is gone. The status pipe
// carries snapshots to the parent, one JSON object a line. The [Board] is a page of
// shared memory on which the child notes what it runs, for the parent to read at any
// time and after a crash.
//
// What is to be done is decided by a pure function of a state, the time and an event; all
// else carries it out. There is one way to replace a child that lives: a second one is
// started in its slot, and once that consumes the first is asked to end, unless it ends
// by itself. A slot never has more than two processes.
package swarm

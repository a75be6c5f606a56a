// Package worker runs jobs: a [Pool] is a bounded number of consumers in one process,
// each with a connection to beanstalkd of its own. A consumer reserves a job, calls the
// handler of its kind, and deletes the job or does what the outcome asks for.
//
// While a handler runs, its job's lease is kept: beanstalkd gives the job to nobody else
// for as long as this process lives and is connected. When a pool stops, running
// handlers may finish; those that outlast the shutdown timeout are told, and their jobs
// go back unharmed.
//
// Package worker/swarm keeps several such processes alive.
package worker

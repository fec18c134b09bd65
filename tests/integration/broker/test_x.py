import time
from tests.integration.broker.test_lost_messages_and_dead_processes import *

@pytest.mark.parametrize("broker", ["redis_broker"], indirect=True)
def test_x(product, redis_broker):
    product.open_gate()
    job = product.submit()
    product.beat.start()
    with transaction.atomic():
        Queue.objects.select_for_update().get(pk=product.queue.pk)
        product.worker.start()
        until(waiting_for_a_lock, within=PATIENCE, what="the worker is admitting the claim")
        redis_broker.kill()
        t=time.monotonic()
        product.worker.says("Unrecoverable|Connection to broker lost")
        p=product.worker._process
        for _ in range(50):
            if p.poll() is not None: break
            time.sleep(.1)
        print("while locked", time.monotonic()-t, p.poll())
    for _ in range(50):
        if p.poll() is not None: break
        time.sleep(.1)
    print("unlocked", time.monotonic()-t, p.poll())
    import psutil, os
    print(os.popen(f"ps -o pid,ppid,sid,stat,wchan:20,cmd -s {p.pid}").read())
    print("beat", product.beat._process.poll())
    print("claim", Claim.objects.get().state)

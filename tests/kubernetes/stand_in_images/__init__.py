"""Images with stand-ins for the programs of the engines, and the rules of the real images.

Each image has the name that the engine's plug-in renders, variables of the real Dockerfile, ``stand_in.py`` at the
paths of the real programs, and rules. A rule is a fact about the real image or program that decides whether a
rendered command works there; ``source`` says where the fact was read. Its ``changed`` value is one that pods of
this product do not satisfy: a test starts one more pod with it, which has to fail.

Devices, libraries and the folders of an Ascend driver, which nodes mount into containers, have no stand-in.
"""

from tests.kubernetes.stand_in_images.images import IMAGES, write
from tests.kubernetes.stand_in_images.rules import MOUNTED, StandInImage

__all__ = ["IMAGES", "MOUNTED", "StandInImage", "write"]

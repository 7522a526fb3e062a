import torch, pytest
from tests.impls.test_agreement import *
from tests.impls import conftest as c
def test_dbg(make_case):
    from dataclasses import replace
    shape=MASKED["padded_cross"]
    for name in ("torch_mha","torch_mha:no_fast_path","torch_mha:need_weights","naive","sdpa"):
        order=input_order(name, replace(shape,scope="layer"))
        case=make_case(shape,dtype="fp16",scope="layer",device="cpu",order=order)
        try: res=case.backend(name)
        except Exception as e: print(name,e); continue
        out=[]
        for r,(ex,al) in zip(res,case.allowed): out.append((tuple(ex.shape), round(float((r.double()-ex).norm())/al,2), float(ex.norm())))
        print(name,out)
    assert 0
